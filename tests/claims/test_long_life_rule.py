"""H1: what the rule says of runs whose waits and memory are known."""

import numpy as np
import pandas as pd
import pytest

from harness.analysis.long_life import NUM_SLICES, by_age, growth
from harness.claims.judgement import ClaimVerdict
from harness.claims.long_life import host_is_bounded

START_BYTES = 1e9


def tables(*, alone=2.0, both=1.0, memory=1.0, misses=0.0, verdicts=("alive", "alive")):
    """Two bounded runs whose wait and memory grow linearly by these factors."""
    runs, ages = [], []
    for host, factor, fat, verdict in (
        (False, alone, 1.2, verdicts[0]),
        (True, both, memory, verdicts[1]),
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
        ages.append(
            pd.DataFrame(
                {
                    "run_digest": name,
                    "age_s": np.arange(NUM_SLICES),
                    "first_token_p50_s": 0.01 * np.linspace(1, factor, NUM_SLICES),
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
        ({"memory": 1.2}, "host memory"),
        ({"misses": 0.001}, "no frame is missed"),
    ],
)
def test_each_part_is_decided_by_its_own_number(changes, what_fails):
    judgement = host_is_bounded(tables(**changes))
    assert judgement.verdict is ClaimVerdict.PARTLY
    assert what_fails in judgement.why


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
    assert table["missed_share"].iloc[-1] == 1.0
    assert table["occupancy"].tolist()[:2] == [0.1, pytest.approx(np.nan, nan_ok=True)]
    assert table["host_bytes"].iloc[-1] == 3


def test_growth_leaves_out_the_warm_up():
    ages = pd.DataFrame({"age_s": range(20), "x": [100.0] + [1.0] * 15 + [1.5] * 4})
    assert growth(ages, "x") == 1.5
