"""C1's rule and the exact intervals behind it."""

import pandas as pd
import pytest

from harness.analysis.proportions import Proportion, collapse_shares
from harness.claims.judgement import ClaimVerdict
from harness.claims.wall_matrix import wall


def _runs(unbounded: int, bounded: int, *, n: int = 20) -> pd.DataFrame:
    rows = []
    for kind, collapsed in (("unbounded", unbounded), ("sink_window", bounded)):
        for index in range(n):
            rows.append(
                {
                    "variant": kind,
                    "retention_kind": kind,
                    "num_sessions": 96 if index % 2 else 128,
                    "verdict": "stalled" if index < collapsed else "alive",
                    "paper_rule_walled": index < collapsed,
                    "deadline_miss_share": 0.0,
                    "silence_onset_s": None,
                    "pool_full_s": None,
                }
            )
    return pd.DataFrame(rows)


def test_intervals_are_exact() -> None:
    assert Proportion(k=0, n=20).interval == pytest.approx((0.0, 0.1684), abs=1e-4)
    assert Proportion(k=14, n=20).interval == pytest.approx((0.4572, 0.8811), abs=1e-4)


@pytest.mark.parametrize(
    ("unbounded", "bounded", "verdict"),
    [
        (14, 0, ClaimVerdict.REPRODUCED),
        (20, 0, ClaimVerdict.PARTLY),
        (14, 1, ClaimVerdict.PARTLY),
        (0, 20, ClaimVerdict.CONTRADICTED),
    ],
)
def test_the_papers_proportion_is_asked_for(
    unbounded: int, bounded: int, verdict: ClaimVerdict
) -> None:
    judged = wall({"": _runs(unbounded, bounded)})
    assert judged.verdict is verdict
    assert f"unbounded {unbounded}/20" in judged.ours


def test_an_invalid_run_spoils_the_count() -> None:
    runs = _runs(14, 0)
    runs.loc[0, "verdict"] = "invalid"
    assert wall({"": runs}).verdict is ClaimVerdict.NOT_MEASURED


def test_a_part_of_the_matrix_decides_nothing() -> None:
    judged = wall({"": _runs(10, 0, n=14)})
    assert judged.verdict is ClaimVerdict.NOT_MEASURED
    assert "14 unbounded" in judged.why


def test_shares_are_counted_by_variant_and_size() -> None:
    shares = collapse_shares(_runs(4, 0))
    assert shares["runs"].tolist() == [10, 10, 10, 10]
    assert shares["collapsed"].sum() == 4
