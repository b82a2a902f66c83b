"""The simulated engine under the replayer: arithmetic, determinism, the cliff, its own death."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from harness.capacity import most_in_flight_tokens, plateau_occupancy
from harness.config import RunConfig
from harness.diagnosis.recording import Recording
from harness.diagnosis.verdicts import Verdict, diagnose, pool_full_s
from harness.engines.sim_args import simulated_step_time, vllm_config
from harness.engines.simulated import SimulatedEngine
from harness.telemetry.schemas import STEPS
from harness.workload.corpus import Clip
from tests.engines.simulation import CROWD, configured, simulate

Simulate = Callable[..., Recording]


@pytest.fixture
def simulated(clips: list[Clip], tmp_path: Path) -> Simulate:
    """Simulate a run; each call has a directory of its own."""
    count = iter(range(100))

    def run_it(
        run: RunConfig, prepare: Callable[[SimulatedEngine], None] | None = None
    ) -> Recording:
        return simulate(run, clips, tmp_path / str(next(count)), prepare=prepare)

    return run_it


def assert_equal(one: Recording, other: Recording) -> None:
    """Every instant, count and event of two recordings is the same."""
    for name in ("frames", "pool", "events"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name), check_exact=True)


@pytest.mark.parametrize("is_async", ["true", "false"])
@pytest.mark.parametrize("retention", ["unbounded", "sink_window"])
def test_one_run_gives_one_recording(simulated: Simulate, retention: str, is_async: str) -> None:
    run = configured(*CROWD, f"retention={retention}", f"engine.async_scheduling={is_async}")
    assert_equal(simulated(run), simulated(run))


@pytest.mark.parametrize("is_async", ["true", "false"])
def test_vllm_counts_as_many_tokens_in_flight_as_capacity_does(
    is_async: str, tmp_path: Path
) -> None:
    run = configured(f"engine.async_scheduling={is_async}")
    assert vllm_config(run, tmp_path).max_in_flight_tokens == most_in_flight_tokens(run)


def test_the_unbounded_cliff_comes_when_arithmetic_says_and_the_bound_prevents_it(
    simulated: Simulate,
) -> None:
    unbounded, bounded = configured("retention=unbounded"), configured("retention=sink_window")
    recording = simulated(unbounded)
    found = diagnose(unbounded, recording)
    assert found.verdict is Verdict.stalled, found.cause
    model, engine, workload = unbounded.model, unbounded.engine, unbounded.workload
    assert engine.kv_pool_blocks is not None
    tokens_per_s = workload.num_sessions * model.kv_tokens_per_frame / model.frame_budget_s
    arithmetic_s = engine.kv_pool_blocks * engine.block_size_tokens / tokens_per_s
    full_s = pool_full_s(unbounded, recording)
    # Between full blocks and full tokens lies one partly filled block a session.
    assert full_s == pytest.approx(arithmetic_s, abs=model.frame_budget_s)

    recording = simulated(bounded)
    assert diagnose(bounded, recording).verdict is Verdict.alive
    peak = float(recording.pool["occupancy"].max())
    # Most calls wait for their next frame, without the blocks that it will need.
    assert 0.6 < peak / plateau_occupancy(bounded, engine.kv_pool_blocks) <= 1.0


@pytest.mark.parametrize("is_async", ["true", "false"])
@pytest.mark.parametrize("seed", range(3))
def test_blocks_and_calls_are_conserved_under_preemption(
    simulated: Simulate, seed: int, is_async: str
) -> None:
    uneven = (
        "workload.answers=geometric",
        "workload.answer_spread=0",
        "engine.max_num_batched_tokens=64",
    )
    run = configured(*CROWD, *uneven, f"engine.async_scheduling={is_async}", f"seed={seed}")
    recording = simulated(run)
    pool = recording.pool
    assert pool["preemptions"].iloc[-1] == len(recording.events_of("preempted")) > 0
    assert pool["occupancy"].between(0, 1).all()
    assert (pool[["running", "waiting", "paused", "preempted"]] >= 0).all(axis=None)
    # A call is in one state at a time, also where vLLM has lost it from its queues.
    assert (pool[["running", "waiting", "paused"]].sum(axis=1).iloc[5:] == 16).all()


def test_preemptions_are_noted_at_virtual_instants(simulated: Simulate) -> None:
    events = simulated(configured(*CROWD)).events_of("preempted")
    assert events["t_s"].between(10, 24).all()
    assert events["session_id"].between(0, 15).all()
    assert events["detail"].str.fullmatch(r"\d+ computed tokens lost").all()


def test_a_stalled_simulation_is_no_hang(simulated: Simulate) -> None:
    run = configured("workload.duration_s=40", "engine.hang_timeout_s=1")
    recording = simulated(run)
    assert diagnose(run, recording).verdict is Verdict.stalled
    assert recording.events_of("engine_dead").empty
    assert (recording.pool["state_age_s"] == 0).all()


def test_a_frame_of_a_call_alone_takes_what_its_steps_cost(simulated: Simulate) -> None:
    run = configured("retention=sink_window", "workload.num_sessions=1")
    cost = run.hardware.step_time(run.model.name)
    assert cost is not None
    frames = simulated(run).frames
    first_s = (
        cost.ingest_frame_s + cost.base_s + cost.request_s + cost.prefill_step_s + cost.frame_s
    )
    # One step for the prompt and the first token, one for each further token.
    last_s = first_s + 7 * (cost.base_s + cost.request_s)
    assert (frames["first_token_s"] - frames["release_s"]).to_numpy() == pytest.approx(first_s)
    assert frames["latency_s"].to_numpy() == pytest.approx(last_s)


def test_a_bound_shortens_steps_by_what_is_not_read(simulated: Simulate) -> None:
    slow = "hardware.step_times.qwen2_5_omni.context_byte_s"
    calls = ("engine.kv_pool_blocks=400", f"+{slow}=1e-10")
    unbounded = simulated(configured(*calls, "retention=unbounded")).frames
    bounded = simulated(configured(*calls, "retention=sink_window")).frames
    latency = [frames.groupby("frame")["latency_s"].mean() for frames in (unbounded, bounded)]
    assert latency[0].iloc[0] == pytest.approx(latency[1].iloc[0], rel=0.01)
    # 8 steps read 1100 tokens of 57,344 bytes each, or 160.
    assert latency[0].iloc[-1] - latency[1].iloc[-1] == pytest.approx(8 * 950 * 5.7e-6, rel=0.2)


def test_a_models_own_context_is_held_to_the_block(clips: list[Clip], tmp_path: Path) -> None:
    run = configured(
        "model=moshi",
        "retention=native",
        "model.native_context_tokens=64",
        "workload.duration_s=12",
    )
    recording = simulate(run, clips, tmp_path)
    assert diagnose(run, recording).verdict is Verdict.alive
    report = json.loads((tmp_path / "bound.json").read_text())
    assert (report["state"], report["window_tokens"]) == ("native", 64)
    assert report["groups"][0]["spec"] == "SlidingWindowSpec"
    # 150 frames would be 5 blocks a call; the last 63 and a new one lie on at most 3.
    assert recording.pool["used_blocks"].max() == 4 * 3
    assert recording.pool["used_blocks"].iloc[-1] <= 4 * 3


def test_the_front_end_digests_one_frame_at_a_time(simulated: Simulate) -> None:
    run = configured(
        "workload.arrivals=synchronised",
        "hardware.step_times.qwen2_5_omni.ingest_frame_s=0.1",
        "retention=sink_window",
    )
    first = simulated(run).frames.query("frame == 3")
    assert sorted(first["ingest_s"]) == pytest.approx([0.1 * k for k in range(1, 9)])


def test_answers_are_as_long_as_each_frame_asks(clips: list[Clip], tmp_path: Path) -> None:
    run = configured("retention=sink_window", "model.output_tokens_per_frame=3")
    frames = simulate(run, clips, tmp_path).frames
    assert (frames["tokens"] == 3).all()
    moshi = configured("retention=sink_window", "model.output_tokens_per_frame=1")
    frames = simulate(moshi, clips, tmp_path).frames
    assert (frames["tokens"] == 1).all()


def test_rotation_before_max_model_len_keeps_every_call_alive(simulated: Simulate) -> None:
    # 5 frames of 59 tokens fit below 320; 18 frames a call make three rotations each.
    limits = (
        "engine.max_model_len=320",
        "engine.on_max_model_len=rotate",
        "workload.duration_s=36",
    )
    run = configured("retention=unbounded", *limits)
    recording = simulated(run)
    assert diagnose(run, recording).verdict is Verdict.alive
    assert recording.frames["tokens"].sum() == recording.frames["expected_tokens"].sum()
    assert recording.events_of("rotated").groupby("session_id").size().tolist() == [3] * 8


def test_a_session_at_max_model_len_kills_the_engine_with_every_other(
    simulated: Simulate,
) -> None:
    run = configured("retention=sink_window")
    short = dataclasses.replace(run, engine=dataclasses.replace(run.engine, max_model_len=320))
    recording = simulated(short)
    found = diagnose(short, recording)
    assert found.verdict is Verdict.engine_dead
    assert "reached max_model_len=320" in found.cause


def test_a_scheduler_that_raises_is_a_dead_engine(simulated: Simulate) -> None:
    def break_it(engine: SimulatedEngine) -> None:
        core = engine._core
        assert core is not None

        def launch() -> None:
            raise AssertionError("no such block")

        core.launch = launch  # type: ignore[method-assign, assignment]

    run = configured("retention=sink_window")
    found = diagnose(run, simulated(run, break_it))
    assert found.verdict is Verdict.engine_dead
    assert "vLLM's scheduler died: AssertionError: no such block" in found.cause


def test_a_frame_is_encoded_once_although_its_prompt_is_cut(
    clips: list[Clip], tmp_path: Path
) -> None:
    """64 tokens a step: of two frames of 52 tokens that meet, the second is computed in parts."""
    roomy = ("engine.kv_pool_blocks=600", "workload.duration_s=8", "engine.record_steps=true")
    run = configured(*CROWD, *roomy, "engine.max_num_batched_tokens=64")
    simulate(run, clips, tmp_path)
    steps = STEPS.read(tmp_path)
    num_frames = run.workload.num_sessions * run.num_frames
    prompt_tokens = run.model.prompt_tokens_per_frame
    assert (steps["num_prefill_tokens"] % prompt_tokens > 0).any()
    assert steps["num_prefill_tokens"].sum() == num_frames * prompt_tokens
    assert steps["num_frames"].sum() == num_frames


def test_repetitions_differ_only_if_the_step_time_has_a_spread(simulated: Simulate) -> None:
    run = configured(*CROWD, "workload.duration_s=8")
    again = dataclasses.replace(run, repetition=1)
    assert_equal(simulated(run), simulated(again))
    entry = dict(run.hardware.step_times["qwen2_5_omni"], spread=0.3)
    hardware = dataclasses.replace(run.hardware, step_times={"qwen2_5_omni": entry})
    run, again = (dataclasses.replace(each, hardware=hardware) for each in (run, again))
    first, other = simulated(run), simulated(again)
    assert_equal(first, simulated(run))
    assert not first.frames["last_token_s"].equals(other.frames["last_token_s"])


def test_a_recycled_frame_pays_for_the_frames_that_its_request_keeps(
    simulated: Simulate,
) -> None:
    # 4 frames of 59 tokens a request, 2 kept: frames 4, 6, 8, ... begin one.
    recycled = ("retention=recycle", "retention.window_tokens=256", "workload.num_sessions=1")
    run = configured(*recycled, "engine.kv_pool_blocks=64")
    frames = simulated(run).frames.set_index("frame")["latency_s"]
    cost = simulated_step_time(run)
    first, other = frames.loc[6], frames.loc[7]
    assert other == pytest.approx(frames.loc[0], rel=1e-6)
    again_s = 2 * (cost.ingest_frame_s + cost.frame_s + 59 * cost.prefill_token_s)
    assert first - other == pytest.approx(again_s, rel=1e-3)
