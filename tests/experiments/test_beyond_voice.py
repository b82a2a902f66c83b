"""A loop without audio through the simulated engine: no corpus, no front end, the same cliff."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.capacity import planned_pool_blocks
from harness.diagnosis.recording import Recording
from harness.diagnosis.verdicts import Verdict, diagnose, pool_full_s
from harness.engines.sim_args import simulated_step_time
from harness.kv.retention import Retention
from harness.workload import growth
from harness.workload.schedule import load_run_streams
from tests.engines.simulation import configured, simulate

# An eighth of the viewers on less than an eighth of the pool, which is full at half time.
SMALL = (
    "experiment=beyond_voice",
    "model=video_assistant",
    "retention=sink_window",
    "retention.window_tokens=1024",
    "workload.num_sessions=6",
    "workload.duration_s=40",
    "engine.kv_pool_blocks=1540",
)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recording]:
    bounded = configured(*SMALL)
    runs = {"bounded": bounded, "unbounded": replace(bounded, retention=Retention())}
    folder = tmp_path_factory.mktemp("loops")
    return {name: simulate(run, [], folder / name) for name, run in runs.items()}


def test_a_loop_collapses_when_arithmetic_says_and_bounded_it_lives(
    recordings: dict[str, Recording],
) -> None:
    bounded = configured(*SMALL)
    unbounded = replace(bounded, retention=Retention())
    found = diagnose(unbounded, recordings["unbounded"])
    assert found.verdict.is_collapse, found.cause
    forecast = growth.saturation(unbounded, planned_pool_blocks(unbounded) or 0)
    assert forecast is not None
    full_s = pool_full_s(unbounded, recordings["unbounded"])
    assert full_s == pytest.approx(forecast.median_s, abs=1.0)
    assert diagnose(bounded, recordings["bounded"]).verdict is Verdict.alive


def test_its_frames_hold_no_audio_and_wait_for_no_front_end(
    recordings: dict[str, Recording], tmp_path: Path
) -> None:
    frames = recordings["bounded"].frames
    assert (frames["ingest_s"] == 0).all()
    schedule = recordings["bounded"].schedule
    assert set(schedule["clip_id"]) == {""}
    assert schedule.drop_duplicates("session_id")["prefix_digest"].is_unique
    # No corpus lies in an empty directory.
    streams = load_run_streams(configured(*SMALL), tmp_path)
    assert [stream.frame(7).size for stream in streams] == [0] * 6


@pytest.mark.parametrize("loop", ["agent_scratchpad", "retrieval_cache"])
def test_a_loop_of_text_pays_for_no_encoder(loop: str) -> None:
    cost = simulated_step_time(configured("experiment=beyond_voice", f"model={loop}"))
    assert cost.frame_s == cost.prefill_step_s == cost.ingest_frame_s == 0
