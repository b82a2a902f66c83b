"""What a controller achieved, on recordings made by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from harness.analysis.admission import (
    admission_outcomes,
    control_over_time,
    finite_quantile,
    latency_over_time,
)
from harness.analysis.schedulable import controller_bias, interval_of, true_concurrency
from harness.analysis.truthfulness import signal_quality, spearman
from harness.composition import compose
from harness.config import AdmissionConfig, AdmissionKind, ArrivalKind, RunConfig, WorkloadConfig
from harness.diagnosis.recording import Recording

SUMMARY = {
    "retention": {"kind": "unbounded", "window_tokens": None, "sink_tokens": 0},
    "run_digest": "d",
}


@pytest.fixture(scope="module")
def run() -> RunConfig:
    """Ten calls, one every two seconds, B = 2 s, 40 s."""
    workload = WorkloadConfig(
        num_sessions=10, arrivals=ArrivalKind.constant, arrival_rate_per_s=0.5, duration_s=40.0
    )
    admission = AdmissionConfig(kind=AdmissionKind.aimd)
    return replace(compose([]).run_config, workload=workload, admission=admission)


def _recording(admitted: list[bool], latencies: dict[int, list[float]]) -> Recording:
    """Calls every two seconds; latencies of the frames of each that was let in."""
    taken = np.array(admitted)
    decisions = pd.DataFrame(
        {
            "t_s": 2.0 * np.arange(len(admitted)),
            "session_id": np.arange(len(admitted)),
            "admitted": taken,
            "live_sessions": np.cumsum(taken) - taken,
        }
    )
    rows = [
        (session, 2.0 * (session + frame), latency)
        for session, values in latencies.items()
        for frame, latency in enumerate(values)
    ]
    frames = pd.DataFrame(rows, columns=["session_id", "release_s", "latency_s"])
    frames["missed"] = ~(frames["latency_s"] <= 2.0)
    frames["tick_wait_s"] = frames["latency_s"].fillna(1.6).clip(upper=1.6)
    events = pd.DataFrame(columns=["t_s", "kind", "session_id", "detail"])
    intervals = pd.DataFrame({"t_s": [2.0, 4.0], "session_cap": [8.0, 24.0]})
    return Recording(
        frames=frames,
        pool=pd.DataFrame(),
        events=events,
        schedule=pd.DataFrame(),
        decisions=decisions,
        intervals=intervals,
    )


def test_a_run_settles_when_its_sessions_stay_within_five_percent(run: RunConfig) -> None:
    recording = _recording([True] * 4 + [False] * 6, {0: [0.1] * 20, 1: [0.1, 3.0] + [0.1] * 17})
    found = admission_outcomes([(run, SUMMARY, recording)]).iloc[0]
    assert (found["offered"], found["admitted"], found["shed"]) == (10, 4, 6)
    assert found["settled_sessions"] == 4
    assert found["converged_s"] == 6.0
    # Session 1's late frame was released at 4 s, before that.
    assert found["harmed_before"] == 1
    assert found["missed_after"] == 0.0


def test_frames_that_never_came_are_the_largest_latencies(run: RunConfig) -> None:
    silent = [0.1] * 10 + [np.nan] * 10
    found = admission_outcomes([(run, SUMMARY, _recording([True], {0: silent}))]).iloc[0]
    assert found["steady_p50_s"] is None
    assert found["steady_missed"] == 1.0
    assert finite_quantile(pd.Series([0.1, np.nan]), 0.5) is None
    assert finite_quantile(pd.Series([0.1, 0.2, np.nan]), 0.5) == 0.2


def test_a_signal_that_rises_with_load_has_rank_correlation_one_and_warns_early(
    run: RunConfig,
) -> None:
    # Ten calls, each frame's latency is 0.19 s a call that is in.
    rows = {
        session: [0.19 * min(session + frame + 1, 10) for frame in range(20 - session)]
        for session in range(10)
    }
    latency = latency_over_time([(run, SUMMARY, _recording([True] * 10, rows))])
    assert latency["live"].tolist()[:3] == [1, 2, 3]
    found = signal_quality(latency).set_index("signal")
    assert found.loc["contract", "rho"] == pytest.approx(1.0)
    # Target 0.6 s is passed by the fourth call's frame budget; nothing is later than B.
    assert found.loc["contract", "first_over_target_s"] == 6.0
    assert pd.isna(found.loc["contract", "warning_s"])


def test_a_signal_that_stands_still_says_nothing() -> None:
    load = pd.Series(range(20))
    assert spearman(load, pd.Series([0.0] * 20)) == 0.0
    assert spearman(load, -load) == pytest.approx(-1.0)
    assert spearman(pd.Series([3.0] * 20), load) is None


def test_sessions_and_cap_over_time_come_from_decisions_and_intervals(run: RunConfig) -> None:
    control = control_over_time([(run, SUMMARY, _recording([True, False, True], {0: [0.1]}))])
    live = control[control["kind"] == "live"]
    assert live[["t_s", "value"]].to_numpy().tolist() == [[0.0, 1.0], [4.0, 2.0]]
    assert control.loc[control["kind"] == "cap", "value"].tolist() == [8.0, 24.0]


def _tries(variant: str, outcomes: dict[int, dict[int, bool]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "variant": variant,
                "retention_kind": variant,
                "seed": seed,
                "num_sessions": n,
                "served": served,
                "duration_s": 90.0,
                "settled_sessions": None,
            }
            for seed, tried in outcomes.items()
            for n, served in tried.items()
        ]
    )


def test_n_star_is_the_median_of_the_searches_with_their_range() -> None:
    tries = _tries("w", {0: {100: True, 200: False, 140: True}, 1: {120: True, 130: False}})
    truth = true_concurrency(tries.assign(served=tries["served"].astype("boolean")))
    assert truth["served_sessions"].tolist() == [140, 120]
    assert truth["failed_sessions"].tolist() == [200, 130]
    assert interval_of(truth) == (130.0, 120.0, 199.0)


def test_a_search_that_found_no_failure_has_no_upper_end() -> None:
    tries = _tries("w", {0: {512: True}})
    truth = true_concurrency(tries.assign(served=tries["served"].astype("boolean")))
    assert interval_of(truth) == (512.0, 512.0, float("inf"))


def test_bias_compares_medians_and_overshoot_the_highest() -> None:
    tries = _tries("w", {0: {100: True, 105: False}})
    truth = true_concurrency(tries.assign(served=tries["served"].astype("boolean")))
    ramps = pd.DataFrame(
        {
            "variant": "w",
            "retention_kind": "w",
            "target_s": 0.6,
            "arrival_rate_per_s": 8.0,
            "seed": [0, 1, 2],
            "settled_sessions": [80, 90, 100],
            "most_sessions": [80, 90, 110],
            "converged_s": 1.0,
            "harmed_before": 0,
            "missed_after": 0.0,
            "shed": 5,
        }
    )
    found = controller_bias(ramps, truth).iloc[0]
    assert found["bias"] == pytest.approx(-0.1)
    assert found["overshoot"] == pytest.approx(1 / 3)
    assert not found["is_censored"]
    unshed = ramps.assign(shed=[0, 0, 5])
    assert controller_bias(unshed, truth).iloc[0]["is_censored"]
