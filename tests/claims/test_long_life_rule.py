"""H1: what the rule says of runs whose waits and memory are known."""

import numpy as np
import pandas as pd
import pytest

from harness.analysis.long_life import NUM_SLICES, by_age, growth
from harness.claims.judgement import ClaimVerdict
from harness.claims.long_life import host_is_bounded

START_BYTES = 1e9


def tables(*, alone=2.0, both=1.0, memory=1.0, drift=1.0, misses=0.0, verdicts=("alive", "alive")):
    """Two bounded runs whose wait and memory grow linearly by these factors.

    drift: of the machine, which every step of the run with both takes part in.
    """
    runs, ages = [], []
    for host, factor, fat, slower, verdict in (
        (False, alone, 1.2, 1.0, verdicts[0]),
        (True, both, memory, drift, verdicts[1]),
    ):
        name = f"host={host}"
        runs.append(
            {
                "run_digest": name,
                "retention_kind": "sink_window",
                "host_bound": host,
                "verdict": verdict,
                "cause": "the replayer was late",
                "deadline_miss_share": misses,
                "duration_s": 120.0,
            }
        )
        gaps = 0.002 * np.linspace(1, slower, NUM_SLICES)
        waits = 0.01 * np.linspace(1, factor, NUM_SLICES) * np.linspace(1, slower, NUM_SLICES)
        ages.append(
            pd.DataFrame(
                {
                    "run_digest": name,
                    "age_s": np.arange(NUM_SLICES),
                    "first_token_p50_s": waits,
                    "wait_in_gaps": waits / gaps,
                    "host_bytes": START_BYTES * np.linspace(1, fat, NUM_SLICES),
                }
            )
        )
    return {"": pd.DataFrame(runs), "ages": pd.concat(ages, ignore_index=True)}


def test_flat_with_both_bounds_and_growing_with_one_reproduces():
    assert host_is_bounded(tables()).verdict is ClaimVerdict.REPRODUCED


@pytest.mark.parametrize(
    ("changes", "what_fails"),
    [
        ({"alone": 1.0}, "with a bounded pool alone"),
        ({"both": 1.5}, "with both it stays within"),
        ({"memory": 1.06}, "stays within 1.05"),
        ({"memory": 1.15}, "host memory grows at most 0.5 times as fast"),
        ({"misses": 0.001}, "no frame is missed"),
    ],
)
def test_each_part_is_decided_by_its_own_number(changes, what_fails):
    judgement = host_is_bounded(tables(**changes))
    assert judgement.verdict is ClaimVerdict.PARTLY
    assert what_fails in judgement.why


def test_a_machine_that_drifts_is_no_growth_with_age():
    found = host_is_bounded(tables(drift=1.3))
    assert found.verdict is ClaimVerdict.REPRODUCED
    assert "x 1.00 (1.00 to 1.00) with both (in seconds x 2.01 and 1.31)" in found.ours


def test_an_invalid_run_measures_nothing():
    judgement = host_is_bounded(tables(verdicts=("alive", "invalid")))
    assert judgement.verdict is ClaimVerdict.NOT_MEASURED
    assert "the replayer was late" in judgement.why


def test_one_run_alone_measures_nothing():
    one = tables()
    one[""] = one[""].iloc[:1]
    assert host_is_bounded(one).verdict is ClaimVerdict.NOT_MEASURED


def test_slices_hold_what_fell_into_them_and_leave_gaps_empty():
    frames = pd.DataFrame(
        {
            "release_s": [0.0, 0.5, 9.9],
            "first_token_s": [0.1, 0.8, np.nan],
            "last_token_s": [0.7, 1.0, np.nan],
            "tokens": [4, 1, 0],
            "missed": [False, True, True],
        }
    )
    pool = pd.DataFrame(
        {
            "t_s": [-0.2, 0.1, 9.9, 10.2],
            "occupancy": [0.9, 0.1, 0.3, 0.9],
            "host_bytes": [9, 1, 3, 9],
        }
    )
    table = by_age(frames, pool, 10.0)
    assert len(table) == NUM_SLICES
    assert table["first_token_p50_s"].iloc[0] == pytest.approx(0.1)
    assert table["first_token_p50_s"].iloc[1] == pytest.approx(0.3)
    assert np.isnan(table["first_token_p50_s"].iloc[-1])
    assert table["token_gap_p50_s"].iloc[0] == pytest.approx(0.2)
    assert table["wait_in_gaps"].iloc[0] == pytest.approx(0.5)
    # One token has no gap.
    assert np.isnan(table["wait_in_gaps"].iloc[1])
    assert table["missed_share"].iloc[-1] == 1.0
    assert table["occupancy"].tolist()[:2] == [0.1, pytest.approx(np.nan, nan_ok=True)]
    assert table["host_bytes"].iloc[-1] == 3


def test_growth_is_a_factor_over_the_run_and_leaves_out_the_warm_up():
    shares = (np.arange(20) + 0.5) / 20
    values = np.exp(np.log(1.5) * shares)
    values[0] = 100.0
    # In one slice the machine did something else.
    values[13] *= 3
    found = growth(pd.DataFrame({"age_s": 6.0 * np.arange(20), "x": values}), "x")
    assert found.factor == pytest.approx(1.5, rel=1e-6)
    assert found.low <= found.factor <= found.high


def test_growth_of_a_run_that_fell_silent_is_that_of_what_was_answered():
    values = [1.0] * 12 + [np.nan] * 8
    assert growth(pd.DataFrame({"age_s": range(20), "x": values}), "x").factor == 1.0
