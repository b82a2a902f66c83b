"""Arrival processes are exact, session lengths whole frames, and the closed system what it was."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from harness.composition import compose
from harness.config import ArrivalKind, RunConfig, SessionLengthKind, WorkloadConfig
from harness.workload.arrivals import session_frames, session_starts
from harness.workload.corpus import Clip
from harness.workload.schedule import (
    build_schedule,
    departures,
    draw_run_streams,
    schedule_digest,
)

CLOSED = compose(["workload.duration_s=41"]).run_config


def _open(seed: int = 0, **values: object) -> RunConfig:
    """Four calls a second for 20 s, B = 2 s."""
    chosen: dict[str, object] = {
        "arrivals": ArrivalKind.constant,
        "arrival_rate_per_s": 4.0,
        "duration_s": 20.0,
    }
    workload = WorkloadConfig(**(chosen | values))  # type: ignore[arg-type]
    return replace(CLOSED, seed=seed, workload=workload)


def test_the_closed_schedule_is_what_it_was_before_there_were_open_ones(
    clips: Sequence[Clip],
) -> None:
    schedule = build_schedule(CLOSED, draw_run_streams(CLOSED, clips))
    # Taken before open systems existed: equal offers must keep their names.
    assert schedule_digest(schedule) == "a5c5aebd33e02d82"
    assert departures(CLOSED, schedule) == []


def test_constant_arrivals_are_evenly_spaced() -> None:
    assert session_starts(_open(num_sessions=12)) == pytest.approx(np.arange(12) / 4)


def test_poisson_gaps_are_exponential_and_drawn_from_the_seed() -> None:
    def starts(seed: int) -> np.ndarray:
        return session_starts(_open(seed, num_sessions=2000, arrivals=ArrivalKind.poisson))

    gaps = np.diff(starts(0), prepend=0.0)
    assert stats.kstest(gaps, stats.expon(scale=0.25).cdf).pvalue > 0.01
    assert (starts(0) == starts(0)).all()
    assert (starts(0) != starts(1)).all()


def test_endless_sessions_release_until_the_run_ends() -> None:
    frames = session_frames(_open(), np.array([0.0, 0.5, 17.0, 18.5, 20.0]))
    assert frames.tolist() == [10, 10, 2, 1, 0]


def test_a_run_may_end_within_a_frame_budget(clips: Sequence[Clip]) -> None:
    run = _open(num_sessions=3, duration_s=21.0)
    schedule = build_schedule(run, draw_run_streams(run, clips))
    assert schedule.groupby("session_id").size().tolist() == [11, 11, 11]
    assert schedule["release_s"].max() == 20.5


def test_exponential_lengths_have_their_mean_and_at_least_one_frame() -> None:
    run = _open(duration_s=1e5, session_lengths=SessionLengthKind.exponential, mean_session_s=60.0)
    frames = session_frames(run, np.zeros(4000))
    assert frames.min() >= 1
    # Rounded up to whole frames: half a frame budget over the mean.
    assert frames.mean() * 2.0 == pytest.approx(61.0, rel=0.05)


def test_lengths_from_data_are_drawn_from_it() -> None:
    run = _open(session_lengths=SessionLengthKind.data, session_data_s=[3.0, 9.5])
    assert set(session_frames(run, np.zeros(50)).tolist()) == {2, 5}


def test_a_call_hangs_up_at_its_last_deadline_unless_the_run_ends_first(
    clips: Sequence[Clip],
) -> None:
    def left(run: RunConfig) -> list[tuple[float, int]]:
        return departures(run, build_schedule(run, draw_run_streams(run, clips)))

    ending = _open(num_sessions=3, session_lengths=SessionLengthKind.data, session_data_s=[6.0])
    assert left(ending) == [(6.0, 0), (6.25, 1), (6.5, 2)]
    assert left(_open(num_sessions=3)) == []


def test_calls_that_would_arrive_after_the_run_are_not_offered(clips: Sequence[Clip]) -> None:
    run = _open(num_sessions=12, arrival_rate_per_s=0.5)
    schedule = build_schedule(run, draw_run_streams(run, clips))
    assert schedule["session_id"].nunique() == 10
    assert schedule["release_s"].max() < run.workload.duration_s
