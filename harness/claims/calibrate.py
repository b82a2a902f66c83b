"""Rule for F3a: a step's duration is linear in what it computes, the simulator's premise."""

from __future__ import annotations

from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured

# Half of the steps lie closer to the fit than this, relative to what was measured.
TYPICAL_ERROR = 0.1


def linear(tables: Tables) -> Judgement:
    """F3a: each table of measured steps is fitted to within a tenth, in the median."""
    fits = tables[""]
    if fits.empty:
        return not_measured("no table of steps was fitted")
    return from_parts(
        {
            f"{row['table']} within {TYPICAL_ERROR:.0%} in the median": bool(
                row["residual_median"] <= TYPICAL_ERROR
            )
            for _, row in fits.iterrows()
        },
        ours="; ".join(
            f"{row['table']}: {row['residual_median']:.1%} in the median, "
            f"{row['residual_p95']:.1%} at most in 95 %, {row['off']}"
            for _, row in fits.iterrows()
        ),
    )
