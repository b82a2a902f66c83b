"""Rule for C1: 14 of 20 unbounded runs walled, 0 of 20 bounded."""

from __future__ import annotations

from harness.analysis.proportions import Proportion, collapse_share
from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured
from harness.diagnosis.verdicts import Verdict

PAPER_WALLED = Proportion(k=14, n=20)


def wall(tables: Tables) -> Judgement:
    """C1: unbounded runs collapse in the paper's proportion, bounded ones never."""
    runs = tables[""]
    if (runs["verdict"] == Verdict.invalid.name).any():
        return not_measured("a run is invalid")
    is_unbounded = runs["retention_kind"] == "unbounded"
    unbounded = collapse_share(runs[is_unbounded])
    bounded = collapse_share(runs[~is_unbounded])
    if min(unbounded.n, bounded.n) < PAPER_WALLED.n:
        return not_measured(
            f"{unbounded.n} unbounded and {bounded.n} bounded runs are in the table, not the "
            f"paper's {PAPER_WALLED.n} of each"
        )
    low, high = PAPER_WALLED.interval
    return from_parts(
        {
            "unbounded runs collapse": unbounded.k > 0,
            f"as often as the paper's 14/20 ({low:.2f} to {high:.2f})": (
                low <= unbounded.k / unbounded.n <= high
            ),
            "no bounded run collapses": bounded.k == 0,
        },
        ours=f"unbounded {unbounded}, bounded {bounded} collapsed",
    )
