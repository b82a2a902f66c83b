from collections.abc import Callable

import pytest

from harness.capacity import (
    check_capacity,
    planned_pool_blocks,
    plateau_occupancy,
    session_plateau_blocks,
)
from harness.config import RunConfig
from harness.core.errors import ConfigError, HarnessError, PoolExhausted

Make = Callable[..., RunConfig]


def test_moshis_own_context_outgrows_a_pool_that_its_sink_window_does_not(run_config: Make) -> None:
    gpu = ("model=moshi", "scale=full", "hardware=rtx_pro_6000", "workload.num_sessions=64")
    native = run_config(*gpu, "retention=native")
    bounded = run_config(*gpu, "retention=sink_window")
    # 3,000 frames on 188 blocks of 16 and an unaligned start: 1.59 GB a call.
    held = session_plateau_blocks(native)
    assert held == 189
    assert native.model.kv.pool_bytes(held, 16) == pytest.approx(1.59e9, rel=0.01)
    pool = planned_pool_blocks(native)
    assert pool is not None
    assert pool // held == 45
    assert pool // session_plateau_blocks(bounded) == 129
    assert plateau_occupancy(native, pool) > 1 > plateau_occupancy(bounded, pool)


def test_a_call_younger_than_the_models_own_context_holds_what_it_has(run_config: Make) -> None:
    short = ("model=moshi", "retention=native", "workload.duration_s=8")
    # 100 frames on blocks of 32, and vLLM's one for an unaligned start.
    assert session_plateau_blocks(run_config(*short)) == 5


@pytest.mark.parametrize("retention", ["unbounded", "window", "sink_window"])
def test_the_default_cliff_fits_and_only_the_unbounded_variant_overflows(
    run_config: Make, retention: str
) -> None:
    run = run_config("experiment=cliff", f"retention={retention}")
    check_capacity(run)
    assert run.engine.kv_pool_blocks is not None
    overflows = plateau_occupancy(run, run.engine.kv_pool_blocks) > 1
    assert overflows == (retention == "unbounded")


@pytest.mark.parametrize(
    ("overrides", "error", "words"),
    [
        (
            ["retention=sink_window", "retention.window_tokens=16"],
            ConfigError,
            "retention.window_tokens=16 must be at least block_size_tokens=32",
        ),
        (
            ["retention=sink_window", "retention.window_tokens=1024"],
            PoolExhausted,
            "over its share of 18 in a pool of 148 for 8 sessions",
        ),
        (
            ["model=moshi", "retention=native", "engine.kv_pool_blocks=33"],
            PoolExhausted,
            "over its share of 8 in a pool of 33 for 4 sessions: choose retention=sink_window",
        ),
        (
            ["engine.kv_pool_blocks=30"],
            PoolExhausted,
            "engine.kv_pool_blocks=30 is below the 37 blocks of 32 tokens",
        ),
        (
            ["retention=sink_window", "engine.kv_pool_blocks=10"],
            PoolExhausted,
            "engine.kv_pool_blocks=10 is below the 14 blocks of 32 tokens",
        ),
        (
            ["workload.duration_s=80", "engine.max_model_len=2048"],
            ConfigError,
            "makes sessions of 2361 tokens, over engine.max_model_len=2048",
        ),
        (
            ["engine.max_num_seqs=4"],
            ConfigError,
            "workload.num_sessions=8 is over engine.max_num_seqs=4",
        ),
    ],
)
def test_what_cannot_work_is_refused_in_one_line_that_says_what_to_change(
    run_config: Make, overrides: list[str], error: type[HarnessError], words: str
) -> None:
    with pytest.raises(error) as caught:
        check_capacity(run_config(*overrides))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_session_may_fill_max_model_len_to_the_last_token(run_config: Make) -> None:
    # 20 frames of 59 tokens, and the token sampled after the last one.
    check_capacity(run_config("engine.max_model_len=1181"))
    with pytest.raises(ConfigError):
        check_capacity(run_config("engine.max_model_len=1180"))
