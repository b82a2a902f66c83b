"""C1's rules, what they ask of the mixture, and the exact intervals behind them."""

import pandas as pd
import pytest

from harness.analysis.odds import paper_cells, spread_table
from harness.analysis.proportions import Proportion, collapse_shares
from harness.analysis.tables import Tables
from harness.claims.judgement import ClaimVerdict
from harness.claims.wall_matrix import (
    arrivals,
    mixture,
    mixture_live,
    race_live,
    wall,
    wall_live,
)


def _runs(unbounded: int, bounded: int, *, n: int = 20, offer: str = "staggered") -> pd.DataFrame:
    rows = []
    for kind, collapsed in (("unbounded", unbounded), ("sink_window", bounded)):
        for index in range(n):
            rows.append(
                {
                    "offer": offer,
                    "variant": kind,
                    "retention_kind": kind,
                    "num_sessions": 96 if index % 2 else 128,
                    "verdict": "stalled" if index < collapsed else "alive",
                    "paper_rule_walled": index < collapsed,
                    "deadline_miss_share": 0.0 if index % 2 else 0.1,
                    "silence_onset_s": None,
                    "pool_full_s": None,
                    "last_token_s": 300.0,
                    "silent_share": 0.0,
                    "preemptions": index,
                    "load": 1.1 if index < collapsed else 0.9,
                }
            )
    return pd.DataFrame(rows)


def _judged_mixture(runs: pd.DataFrame, sigma: float) -> ClaimVerdict:
    return mixture({"": runs, "spread": spread_table(paper_cells(sigma), sigma)}).verdict


def _live(same_offer: pd.DataFrame) -> Tables:
    return {"": pd.concat([_runs(12, 0), same_offer], ignore_index=True)}


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


def test_what_the_papers_rule_counts_is_compared_with_the_paper() -> None:
    runs = _runs(20, 0).assign(paper_rule_walled=False)
    judged = wall({"": runs})
    assert judged.verdict is ClaimVerdict.PARTLY
    assert "unbounded 20/20 (0.83 to 1.00) collapsed, 0/20 (0.00 to 0.17) walled" in judged.ours
    runs.loc[:13, "paper_rule_walled"] = True
    assert wall({"": runs}).verdict is ClaimVerdict.REPRODUCED


@pytest.mark.parametrize("rule", [wall, wall_live, mixture_live, race_live, arrivals])
def test_many_invalid_runs_spoil_the_count(rule: object) -> None:
    runs = _runs(14, 0)
    runs.loc[:6, "verdict"] = "invalid"
    assert callable(rule)
    assert rule({"": runs}).verdict is ClaimVerdict.NOT_MEASURED


def test_a_part_of_the_matrix_decides_nothing() -> None:
    judged = wall({"": _runs(10, 0, n=14)})
    assert judged.verdict is ClaimVerdict.NOT_MEASURED
    assert "14 unbounded" in judged.why


def test_a_single_invalid_run_is_left_out_and_said_so() -> None:
    runs = _runs(14, 0)
    runs.loc[39, "verdict"] = "invalid"
    judged = wall({"": runs})
    assert judged.verdict is ClaimVerdict.REPRODUCED
    assert "bounded 0/19 (0.00 to 0.18) collapsed (1 invalid left out)" in judged.ours
    assert collapse_shares(runs)["invalid"].tolist() == [0, 0, 0, 1]


def test_shares_are_counted_by_offer_variant_and_size_with_the_survivors_misses() -> None:
    shares = collapse_shares(_runs(4, 0))
    assert shares["runs"].tolist() == [10, 10, 10, 10]
    assert shares["collapsed"].sum() == shares["stalled"].sum() == shares["walled"].sum() == 4
    # The even runs have N = 128 and misses; two of each size have collapsed.
    assert shares["survivors_with_misses"].tolist() == [8, 0, 10, 0]


def test_a_mixture_needs_both_the_count_and_the_runs_to_be_mixed() -> None:
    assert _judged_mixture(_runs(14, 0), 1.0) is ClaimVerdict.REPRODUCED
    assert _judged_mixture(_runs(20, 0), 1.0) is ClaimVerdict.PARTLY
    assert _judged_mixture(_runs(20, 0), 0.05) is ClaimVerdict.CONTRADICTED


def test_live_the_same_offer_must_end_differently() -> None:
    mixed = _runs(8, 0, offer="due at once")
    assert race_live(_live(mixed)).verdict is ClaimVerdict.REPRODUCED
    alike = _runs(20, 0, offer="due at once")
    assert race_live(_live(alike)).verdict is ClaimVerdict.CONTRADICTED
    assert race_live({"": _runs(12, 0)}).verdict is ClaimVerdict.NOT_MEASURED


def test_live_counting_must_be_right_on_every_run() -> None:
    tables = _live(_runs(8, 0, offer="due at once"))
    tables[""].loc[0, "load"] = 0.9
    judged = mixture_live(tables)
    assert judged.verdict is ClaimVerdict.PARTLY
    assert "counted before the run 19 right" in judged.ours


def test_only_the_staggered_runs_count_for_the_live_share() -> None:
    assert wall_live(_live(_runs(20, 0, offer="due at once"))).verdict is ClaimVerdict.REPRODUCED
    none_survives = {"": _runs(20, 0)}
    assert wall_live(none_survives).verdict is ClaimVerdict.PARTLY
    bounded_dies = _live(_runs(20, 1, offer="due at once"))
    assert wall_live(bounded_dies).verdict is ClaimVerdict.PARTLY


def test_arrivals_decide_only_if_someone_stalls() -> None:
    cached = _runs(20, 20, offer="staggered, prefix cache")
    stalls = pd.concat([_runs(3, 0, offer="due at once"), cached])
    assert arrivals({"": stalls}).verdict is ClaimVerdict.REPRODUCED
    none = pd.concat([_runs(0, 0, offer="due at once"), cached])
    assert arrivals({"": none}).verdict is ClaimVerdict.PARTLY
