"""The replayer, the sampler and the recorder on the echo engine, in virtual time."""

import asyncio
from collections.abc import Callable, Sequence

import pandas as pd
import pytest

from harness.config import RunConfig
from harness.core import clock
from harness.core.pool_state import PoolState
from harness.diagnosis.recording import Recording
from harness.diagnosis.verdicts import Verdict, diagnose
from harness.engines.echo import EchoEngine
from harness.replay.replayer import Replayer
from harness.telemetry.recorder import Recorder
from harness.telemetry.sampler import sample_pool, sampling_interval_s
from harness.workload.corpus import Clip
from harness.workload.schedule import build_schedule, draw_run_streams, schedule_digest

Make = Callable[..., RunConfig]


def _replay(run: RunConfig, clips: Sequence[Clip], engine: EchoEngine) -> Recording:
    streams = draw_run_streams(run, clips)
    schedule = build_schedule(run, streams)
    recorder = Recorder(schedule, frame_budget_s=run.model.frame_budget_s)

    async def main() -> None:
        replayer = Replayer(
            schedule, streams, engine, recorder, frame_budget_s=run.model.frame_budget_s
        )
        sampler = asyncio.create_task(
            sample_pool(
                engine.pool, recorder, interval_s=sampling_interval_s(run.model.frame_budget_s)
            )
        )
        await replayer.run(clock.now() + 1.0, hang_timeout_s=10.0)
        sampler.cancel()
        await replayer.close()

    clock.run_virtual(main())
    return Recording(
        frames=recorder.frame_table(run.diagnosis),
        pool=recorder.pool_table(),
        events=recorder.event_table(),
        schedule=schedule,
    )


def test_frames_are_released_on_time_and_answered(run_config: Make, clips: list[Clip]) -> None:
    run = run_config("workload.duration_s=20")
    recording = _replay(run, clips, EchoEngine(service_time_s=0.1))
    frames = recording.frames
    assert len(frames) == 8 * 10
    assert frames["release_lag_s"].abs().max() < 1e-6
    assert frames["latency_s"].to_numpy() == pytest.approx(0.1)
    assert frames.groupby("frame")["release_s"].min().tolist() == pytest.approx(
        [2.0 * k for k in range(10)]
    )


def test_a_slow_engine_delays_no_release(run_config: Make, clips: list[Clip]) -> None:
    run = run_config("workload.duration_s=20")
    recording = _replay(run, clips, EchoEngine(service_time_s=3.0))
    assert recording.frames["release_lag_s"].abs().max() < 1e-6
    # Open loop: at 3 s a frame every 2 s, the k-th frame is 3 + k late, without catching up.
    session = recording.frames[recording.frames["session_id"] == 0]
    assert session["latency_s"].iloc[:6].to_numpy() == pytest.approx([3.0 + k for k in range(6)])
    assert session["latency_s"].iloc[-1] != session["latency_s"].iloc[-1]
    assert diagnose(run, recording).verdict is Verdict.overloaded


def test_a_mute_engine_is_a_stall(run_config: Make, clips: list[Clip]) -> None:
    run = run_config("workload.duration_s=20")
    recording = _replay(run, clips, EchoEngine(service_time_s=0.05, mute_from_frame=5))
    found = diagnose(run, recording)
    assert found.verdict is Verdict.stalled
    assert recording.frames["missed"].mean() == 0.5
    assert (recording.frames["tick_wait_s"] < run.model.frame_budget_s).all()


def test_an_engine_that_dies_ends_the_replay_and_keeps_what_was_recorded(
    run_config: Make, clips: list[Clip]
) -> None:
    run = run_config("workload.duration_s=20")
    recording = _replay(run, clips, EchoEngine(service_time_s=0.05, dies_at_frame=4))
    found = diagnose(run, recording)
    assert found.verdict is Verdict.engine_dead
    assert "the echo engine died at frame 4" in found.cause
    frames = recording.frames
    assert len(frames) == 80
    assert (frames["tokens"] > 0).sum() == 8 * 4
    # Frames that nobody could release are in the table, unreleased and missed.
    assert frames["released_s"].isna().sum() > 0
    assert frames.loc[frames["released_s"].isna(), "missed"].all()


class _HangingEngine(EchoEngine):
    """Publishes its state once and never again."""

    _frozen: PoolState | None = None

    def pool(self) -> PoolState | None:
        self._frozen = self._frozen or super().pool()
        return self._frozen


def test_an_engine_whose_scheduler_stops_publishing_is_dead(
    run_config: Make, clips: list[Clip]
) -> None:
    run = run_config("workload.duration_s=40")
    recording = _replay(run, clips, _HangingEngine(service_time_s=0.05))
    dead = recording.events_of("engine_dead")
    assert len(dead) == 1
    assert "took no step for 10 s" in dead["detail"].iloc[0]
    assert dead["t_s"].iloc[0] == pytest.approx(10.0, abs=0.2)


def test_one_seed_gives_one_recording_ten_times(run_config: Make, clips: list[Clip]) -> None:
    run = run_config("workload.duration_s=10", "seed=7")
    first = _replay(run, clips, EchoEngine(service_time_s=0.3))
    for _ in range(9):
        again = _replay(run, clips, EchoEngine(service_time_s=0.3))
        pd.testing.assert_frame_equal(again.frames, first.frames)
        pd.testing.assert_frame_equal(again.pool, first.pool)


def test_the_schedule_depends_on_the_seed_and_not_on_the_retention(
    run_config: Make, clips: list[Clip]
) -> None:
    def digest(*overrides: str) -> str:
        run = run_config(*overrides)
        return schedule_digest(build_schedule(run, draw_run_streams(run, clips)))

    assert digest("retention=unbounded") == digest("retention=sink_window")
    assert digest("seed=0") != digest("seed=1")


def test_staggered_sessions_share_a_frame_budget_evenly_and_synchronised_ones_do_not(
    run_config: Make, clips: list[Clip]
) -> None:
    def starts(kind: str) -> list[float]:
        run = run_config(f"workload.arrivals={kind}")
        schedule = build_schedule(run, draw_run_streams(run, clips))
        return sorted(schedule.groupby("session_id")["release_s"].min())

    assert starts("staggered") == pytest.approx([0.25 * k for k in range(8)])
    assert starts("synchronised") == [0.0] * 8
