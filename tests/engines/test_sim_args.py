import pytest

from harness.composition import compose
from harness.config import RunConfig
from harness.core.errors import ConfigError, HarnessError, PoolExhausted
from harness.engines.sim_args import check_simulation, simulated_pool_blocks

GPU = ("scale=full", "model=qwen3_omni", "hardware=rtx_pro_6000")


LONG = (*GPU, "retention=sink_window", "engine.max_model_len=32768", "workload.num_sessions=2")


def _run(*overrides: str) -> RunConfig:
    return compose(["engine=sim", *overrides]).run_config


def test_the_simulated_pool_is_the_papers() -> None:
    run = _run(*GPU)
    check_simulation(run)
    tokens = simulated_pool_blocks(run) * run.engine.block_size_tokens
    assert 0.53e6 <= tokens <= 0.57e6


@pytest.mark.parametrize(
    ("overrides", "error", "words"),
    [
        (["scale=full"], ConfigError, "hardware=this_machine has no known memory"),
        (["model.name=mine"], ConfigError, "this_machine.yaml has no step time of mine"),
        (["hardware=h200"], ConfigError, "of qwen2_5_omni at scale=full, not tiny"),
        ([*GPU, "engine.kv_pool_blocks=100"], PoolExhausted, "below the 516 blocks"),
        # 1023 of the window and two steps of 8192 on 1088 blocks, 1 unaligned, 1 of sinks.
        ([*LONG, "engine.kv_pool_blocks=1089"], PoolExhausted, "below the 1090 blocks"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_one_line(
    overrides: list[str], error: type[HarnessError], words: str
) -> None:
    with pytest.raises(error) as caught:
        check_simulation(_run(*overrides))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_step_times_name_a_simulated_run_and_no_other() -> None:
    slower = "hardware.step_times.qwen3_omni.base_s=0.006"
    other = "hardware.step_times.moshi.base_s=0.006"
    assert _run(*GPU).digest != _run(*GPU, slower).digest
    assert _run(*GPU).digest == _run(*GPU, other).digest
    live = [compose(["engine=vllm", *GPU, *o]).run_config.digest for o in ([], [slower])]
    assert live[0] == live[1]


def test_a_simulated_number_says_so() -> None:
    assert _run(*GPU).evidence == "simulated"
    assert _run(*GPU).is_scheduled_async
    assert not _run().is_scheduled_async
