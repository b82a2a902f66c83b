import json
from types import SimpleNamespace

import pytest
import torch
from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend
from vllm.v1.kv_cache_interface import FullAttentionSpec, SlidingWindowSpec

from harness.core.errors import EngineError
from harness.vllm_plugin.backend import bounded
from harness.vllm_plugin.self_check import inspect_scheduler
from tests.vllm_plugin.stand_ins import cache_manager, spec

LAYOUT = {"block_size": 4, "num_kv_heads": 2, "head_size": 32, "dtype": torch.float32}
FULL = FullAttentionSpec(**LAYOUT)


def scheduler(kv_spec, bound, backend=None):
    """What the check reads of a scheduler, around vLLM's real cache manager."""
    manager = cache_manager(kv_spec)
    entry = {"metronome": {"window_tokens": bound[0], "sink_tokens": bound[1]}} if bound else {}
    layers = {"layer.0": SimpleNamespace(get_attn_backend=lambda: backend)} if backend else {}
    return SimpleNamespace(
        vllm_config=SimpleNamespace(
            additional_config=entry,
            compilation_config=SimpleNamespace(static_forward_context=layers),
        ),
        kv_cache_config=manager.kv_cache_config,
        kv_cache_manager=manager,
    )


def test_a_bound_in_force_is_reported_with_its_plateau():
    report = inspect_scheduler(scheduler(spec(8, 5), (8, 5))).as_dict()
    assert json.loads(json.dumps(report)) == report
    assert report == {
        "state": "bounded",
        "window_tokens": 8,
        "sink_tokens": 5,
        # 2 blocks of sinks; 7 tokens of window and 16 in flight on 6 blocks; an unaligned start.
        "blocks_per_session": 9,
        "num_bounded_layers": 1,
        "num_layers": 1,
        "num_pool_blocks": 64,
        "groups": [
            {
                "spec": "SinkWindowSpec",
                "manager": "SinkWindowManager",
                "num_layers": 1,
                "block_size_tokens": 4,
                # Keys and values of 4 tokens, 2 heads of 32 numbers of 4 bytes.
                "block_size_bytes": 2 * 4 * 2 * 32 * 4,
                "max_blocks_per_session": 9,
            }
        ],
    }


def test_one_line_says_what_is_in_force_and_what_a_session_will_hold():
    assert inspect_scheduler(scheduler(spec(8, 5), (8, 5))).sentence() == (
        "sessions are bounded: W=8, S=5 in 1 of 1 layers; in blocks of 4 a decoding query sees the "
        "first 8 tokens and the last 8 to 11; a session holds at most 9 blocks "
        "(36 tokens, 0.02 MiB), so that the pool of 64 holds 7 of them"
    )
    assert inspect_scheduler(scheduler(FULL, None)).sentence() == (
        "sessions are unbounded: 1 layers, 64 blocks"
    )


def test_an_engine_without_a_bound_is_reported_unbounded():
    report = inspect_scheduler(scheduler(FULL, None))
    assert report.state == "unbounded"
    assert (report.window_tokens, report.sink_tokens) == (None, 0)
    assert report.blocks_per_session is None
    assert report.num_bounded_layers == 0
    assert report.groups[0].max_blocks_per_session is None


def test_a_models_own_context_is_reported_with_its_plateau():
    own = SlidingWindowSpec(sliding_window=8, **LAYOUT)
    report = inspect_scheduler(scheduler(own, None))
    assert (report.state, report.window_tokens, report.sink_tokens) == ("native", 8, 0)
    # 7 tokens of window and 16 in flight on 6 blocks; an unaligned start.
    assert report.blocks_per_session == report.groups[0].max_blocks_per_session == 7
    assert report.num_bounded_layers == report.num_layers == 1


@pytest.mark.parametrize("other", [FULL, SlidingWindowSpec(sliding_window=12, **LAYOUT)])
def test_a_window_that_not_every_layer_has_is_no_context_of_the_model(other):
    own = scheduler(SlidingWindowSpec(sliding_window=8, **LAYOUT), None)
    wider = scheduler(other, None)
    own.kv_cache_config.kv_cache_groups.extend(wider.kv_cache_config.kv_cache_groups)
    managers = wider.kv_cache_manager.coordinator.single_type_managers
    own.kv_cache_manager.coordinator.single_type_managers += managers
    assert inspect_scheduler(own).state == "unbounded"
    assert inspect_scheduler(own).window_tokens is None


def test_a_bound_that_is_asked_for_and_not_in_force_is_an_error():
    with pytest.raises(EngineError, match=r"asks for W=8, S=4, but 1 layers keep everything"):
        inspect_scheduler(scheduler(FULL, (8, 4)))


def test_a_model_whose_layers_all_have_their_own_window_is_not_bounded():
    own = SlidingWindowSpec(sliding_window=16, **LAYOUT)
    with pytest.raises(EngineError, match="no layer is bounded"):
        inspect_scheduler(scheduler(own, (8, 4)))


@pytest.mark.parametrize("found", [(8, 3), (12, 4)])
def test_another_bound_than_the_one_asked_for_is_an_error(found):
    with pytest.raises(EngineError, match="but a layer keeps"):
        inspect_scheduler(scheduler(spec(*found), (8, 4)))


def test_a_bound_that_nobody_asked_for_is_an_error():
    with pytest.raises(EngineError, match="asks for no bound, but a layer keeps"):
        inspect_scheduler(scheduler(spec(8, 4), None))


def test_a_bounded_cache_under_unbounded_attention_is_an_error_where_it_can_be_seen():
    wrong = scheduler(spec(8, 4), (8, 4), backend=CPUAttentionBackend)
    with pytest.raises(EngineError, match=r"layer\.0 has a bounded cache but reads all of it"):
        inspect_scheduler(wrong)
    inspect_scheduler(scheduler(spec(8, 4), (8, 4), backend=bounded(CPUAttentionBackend)))
