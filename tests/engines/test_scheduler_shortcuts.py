"""A schedule with shortcuts equals vLLM's own: every instant, every count, every preemption."""

from pathlib import Path

import pytest

from harness.workload.corpus import Clip
from tests.engines.simulation import CROWD, configured, simulate
from tests.engines.test_simulated import assert_equal

WORKLOADS = {
    "staggered": ("workload.duration_s=40",),
    "crowd": CROWD,
    "uneven": (*CROWD, "workload.answers=geometric", "workload.answer_spread=0"),
    "late": (*CROWD, "hardware.step_times.qwen2_5_omni.base_s=0.03"),
    "rotating": (
        *CROWD,
        "engine.max_model_len=400",
        "engine.on_max_model_len=rotate",
        "engine.kv_pool_blocks=150",
    ),
    "chunked": (
        *CROWD,
        "workload.answers=geometric",
        "workload.answer_spread=0",
        "engine.max_num_batched_tokens=64",
    ),
}
RETENTIONS = {
    "unbounded": ("retention=unbounded",),
    "window": ("retention=window",),
    "sinks": ("retention=sink_window", "retention.sink_tokens=40"),
}


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("retention", RETENTIONS)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_recording_with_shortcuts_is_that_without(
    workload: str, retention: str, is_async: bool, clips: list[Clip], tmp_path: Path
) -> None:
    common = (
        *WORKLOADS[workload],
        *RETENTIONS[retention],
        f"engine.async_scheduling={is_async}",
    )
    recordings = [
        simulate(
            configured(*common, f"engine.scheduler_shortcuts={shortcuts}"),
            clips,
            tmp_path / shortcuts,
        )
        for shortcuts in ("true", "false")
    ]
    assert_equal(*recordings)
    if workload != "staggered" and retention == "unbounded":
        # Otherwise it would say nothing of a full pool.
        assert len(recordings[0].events_of("preempted"))


def test_shortcuts_and_prefix_caching_go_together(clips: list[Clip], tmp_path: Path) -> None:
    common = (*CROWD, "engine.prefix_caching=true")
    recordings = [
        simulate(
            configured(*common, f"engine.scheduler_shortcuts={shortcuts}"),
            clips,
            tmp_path / shortcuts,
        )
        for shortcuts in ("true", "false")
    ]
    assert_equal(*recordings)
