"""C1b's and C4's rules on hand-made tables: each part of a claim can fail the verdict."""

from typing import Any

import pandas as pd
import pytest

from harness.claims import budget, burst
from harness.claims.judgement import ClaimVerdict


def _runs(**changes: Any) -> pd.DataFrame:
    rows = []
    for duration_s in (90.0, 300.0):
        for kind in ("unbounded", "sink_window"):
            for size in (64, 160):
                is_dead = duration_s > 90 and kind == "unbounded" and size == 160
                rows.append(
                    {
                        "variant": kind,
                        "retention_kind": kind,
                        "num_sessions": size,
                        "duration_s": duration_s,
                        "frame_budget_s": 2.0,
                        "verdict": "stalled" if is_dead else "alive",
                        "cause": "",
                        "completeness": 0.5 if is_dead else 1.0,
                        "answer_early_s": 0.5,
                        "answer_late_s": 0.6,
                        "gateway_early_s": 0.002,
                        "gateway_late_s": 0.003,
                    }
                )
    for name, value in changes.items():
        # The first is an unbounded burst of 64 calls.
        rows[0][name] = value
    return pd.DataFrame(rows)


def test_flat_bursts_reproduce_the_claim_and_name_who_dies_later() -> None:
    judged = burst.flat({"": _runs()})
    assert judged.verdict is ClaimVerdict.REPRODUCED
    assert "after 300 s, calls are silent in unbounded at N = 160" in judged.ours


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gateway_late_s": 0.03}, "single-digit ms"),
        ({"completeness": 0.99}, "alive with every token"),
        ({"answer_late_s": 0.8}, "release to last token is flat"),
    ],
)
def test_a_burst_that_is_not_flat_is_a_part_that_fails(change: dict[str, Any], words: str) -> None:
    judged = burst.flat({"": _runs(**change)})
    assert judged.verdict is ClaimVerdict.PARTLY
    assert words in judged.why


def test_nothing_is_claimed_from_an_invalid_burst_or_from_none() -> None:
    assert burst.flat({"": _runs(verdict="invalid")}).verdict is ClaimVerdict.NOT_MEASURED
    longer = _runs()
    longer = longer[longer["duration_s"] > 90]
    assert burst.flat({"": longer}).verdict is ClaimVerdict.NOT_MEASURED


def _tables(**changes: Any) -> dict[str, pd.DataFrame]:
    line = {
        "window_tokens": 1024,
        "num_points": 4,
        "r_squared": 0.9999,
        "share_per_session": 0.0019,
        "share_low": 0.0018,
        "share_high": 0.0020,
        "ceiling_sessions": 530.0,
        "ceiling_low": 520.0,
        "ceiling_high": 540.0,
        "pool_tokens": 565_984,
    }
    return {"": _runs(), "lines": pd.DataFrame([line | changes])}


def test_a_line_near_the_papers_reproduces_the_claim_with_its_interval() -> None:
    judged = budget.plateau(_tables())
    assert judged.verdict is ClaimVerdict.REPRODUCED
    assert judged.interval == (520.0, 540.0)
    assert "496 in the paper's 0.53 M" in judged.ours


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"r_squared": 0.9}, "linear in N"),
        ({"share_per_session": 0.003}, "about 0.2 %"),
        ({"ceiling_sessions": 600.0}, "within 10%"),
        ({"ceiling_low": 200.0}, "above N*"),
    ],
)
def test_each_part_of_the_budget_can_fail(change: dict[str, Any], words: str) -> None:
    judged = budget.plateau(_tables(**change))
    assert judged.verdict is ClaimVerdict.PARTLY
    assert words in judged.why


def test_no_line_at_the_papers_window_is_no_measurement() -> None:
    assert budget.plateau(_tables(window_tokens=512)).verdict is ClaimVerdict.NOT_MEASURED
