"""Arrivals, shed calls and departures on the simulated engine, under the real replayer."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from harness.config import (
    AdmissionConfig,
    AdmissionKind,
    ArrivalKind,
    RunConfig,
    SessionLengthKind,
    WorkloadConfig,
)
from harness.diagnosis.recording import Recording
from harness.diagnosis.summary import summarise
from harness.diagnosis.verdicts import Verdict, diagnose
from harness.workload.corpus import Clip
from tests.engines.simulation import configured, simulate

Simulate = Callable[[RunConfig], Recording]


@pytest.fixture
def simulated(clips: list[Clip], tmp_path: Path) -> Simulate:
    """Simulate a run; each call has a directory of its own."""
    count = iter(range(100))
    return lambda run: simulate(run, clips, tmp_path / str(next(count)))


@pytest.fixture(scope="module")
def base() -> RunConfig:
    return configured("engine.kv_pool_blocks=148")


def _offer(base: RunConfig, admission: AdmissionConfig, **values: object) -> RunConfig:
    """One endless call every half second for 20 s."""
    chosen: dict[str, object] = {
        "arrivals": ArrivalKind.constant,
        "arrival_rate_per_s": 2.0,
        "duration_s": 20.0,
        "num_sessions": 6,
    }
    workload = WorkloadConfig(**(chosen | values))  # type: ignore[arg-type]
    return replace(base, workload=workload, admission=admission)


TWO = AdmissionConfig(kind=AdmissionKind.fixed_cap, session_cap=2)


def test_a_shed_call_costs_the_engine_nothing(base: RunConfig, simulated: Simulate) -> None:
    crowd = simulated(_offer(base, TWO))
    alone = simulated(_offer(base, AdmissionConfig(), num_sessions=2))
    pd.testing.assert_frame_equal(crowd.frames, alone.frames, check_exact=True)
    columns = ["t_s", "used_blocks", "steps", "scheduled_tokens"]
    # The crowd's run lasts until the last offered call's deadline.
    pool = crowd.pool.iloc[: len(alone.pool)]
    pd.testing.assert_frame_equal(pool[columns], alone.pool[columns], check_exact=True)
    assert crowd.decisions["admitted"].tolist() == [True] * 2 + [False] * 4
    assert crowd.decisions["live_sessions"].tolist() == [0, 1, 2, 2, 2, 2]
    assert crowd.schedule["session_id"].nunique() == 6


def test_only_admitted_calls_are_expected_to_be_answered(
    base: RunConfig, simulated: Simulate
) -> None:
    run = _offer(base, TWO)
    recording = simulated(run)
    summary = summarise(run, recording)
    assert summary["completeness"] == 1.0
    assert summary["verdict"] == "alive"
    assert set(recording.frames["session_id"]) == {0, 1}


def test_a_call_that_hangs_up_returns_its_blocks_and_its_place(
    base: RunConfig, simulated: Simulate
) -> None:
    run = _offer(
        base,
        TWO,
        session_lengths=SessionLengthKind.data,
        session_data_s=[4.0],
        arrival_rate_per_s=0.4,
        num_sessions=6,
    )
    recording = simulated(run)
    # A call every 2.5 s that stays for 4: never more than two.
    assert recording.decisions["admitted"].all()
    left = recording.events_of("session_left")
    assert left["t_s"].tolist() == pytest.approx([4.0, 6.5, 9.0, 11.5, 14.0, 16.5])
    last = recording.pool[recording.pool["t_s"] > 17.0]
    assert (last["used_blocks"] == 0).all()
    assert diagnose(run, recording).verdict is Verdict.alive


def test_a_stall_is_one_although_some_had_left_before_it(
    base: RunConfig, simulated: Simulate
) -> None:
    run = _offer(
        base,
        AdmissionConfig(),
        session_lengths=SessionLengthKind.data,
        session_data_s=[2.0, 400.0],
        num_sessions=24,
        duration_s=40.0,
    )
    recording = simulated(run)
    assert len(recording.events_of("session_left")) > 5
    assert diagnose(run, recording).verdict is Verdict.stalled


def test_aimd_writes_down_what_it_saw(base: RunConfig, simulated: Simulate) -> None:
    # A target between what one call takes and what four at once do.
    controller = AdmissionConfig(
        kind=AdmissionKind.aimd,
        target_share_of_budget=0.025,
        floor_sessions=1,
        increase_sessions=1,
        decrease_factor=0.5,
    )
    run = _offer(base, controller, num_sessions=30)
    recording = simulated(run)
    decisions, intervals = recording.decisions, recording.intervals
    admitted = decisions[decisions["admitted"]]
    assert (admitted["live_sessions"] + 1 <= admitted["session_cap"]).all()
    shed = decisions[~decisions["admitted"]]
    assert len(shed) > 0
    assert (shed["live_sessions"] + 1 > shed["session_cap"]).all()
    seen = decisions.dropna(subset="signal_s")
    assert set(seen["signal_s"]) <= set(intervals["signal_s"])
    assert (intervals["congested"] == (intervals["signal_s"] > 0.05)).all()
    assert simulated(run).decisions.equals(decisions)
