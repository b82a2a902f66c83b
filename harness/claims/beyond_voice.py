"""Rule for C12: the same cliff in loops without audio, and the same cure."""

from __future__ import annotations

import pandas as pd

from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured
from harness.diagnosis.verdicts import Verdict

# As for the forecast of the cliff: the paper's own two are off by 2 % and 13 %.
FORECAST_TOLERANCE = 0.15
# A cliff, not a slope: misses of frames that were due before the pool was full.
EARLY_MISS_TOLERANCE = 0.01

_NOT_A_RESULT = {Verdict.invalid.name, Verdict.never_served.name, Verdict.ended_early.name}


def same_cliff(tables: Tables) -> Judgement:
    """C12: every loop collapses when arithmetic says, without a warning, and bounded it lives."""
    runs = tables[""]
    spoiled = runs[runs["verdict"].isin(_NOT_A_RESULT)]
    if len(spoiled):
        first = spoiled.iloc[0]
        return not_measured(f"{first['model']} {first['variant']} is {first['verdict']}")
    pairs = _pairs(runs)
    if not pairs:
        return not_measured("the table holds no unbounded and bounded pair of the same offer")
    errors = {loop: _forecast_error(unbounded) for loop, (unbounded, _) in pairs.items()}
    early = {
        loop: _early_misses(unbounded, tables["frames"]) for loop, (unbounded, _) in pairs.items()
    }
    return from_parts(
        {
            "every unbounded loop collapses": all(
                Verdict[unbounded["verdict"]].is_collapse for unbounded, _ in pairs.values()
            ),
            f"within {FORECAST_TOLERANCE:.0%} of the time that arithmetic expects": all(
                error is not None and abs(error) <= FORECAST_TOLERANCE for error in errors.values()
            ),
            "and answers in time until then": all(
                share <= EARLY_MISS_TOLERANCE for share in early.values()
            ),
            "every bounded loop is alive with every token delivered": all(
                bounded["verdict"] == Verdict.alive.name and bounded["completeness"] == 1.0
                for _, bounded in pairs.values()
            ),
        },
        ours="; ".join(
            _found(loop, *pair, errors[loop], early[loop]) for loop, pair in pairs.items()
        ),
    )


def _pairs(runs: pd.DataFrame) -> dict[str, tuple[pd.Series, pd.Series]]:
    """The unbounded and the bounded run of each loop that has both, on one schedule."""
    pairs = {}
    for loop, of_loop in runs.groupby("model", sort=False):
        is_unbounded = of_loop["retention_kind"] == "unbounded"
        has_both = is_unbounded.any() and not is_unbounded.all()
        if has_both and of_loop["schedule_digest"].nunique() == 1:
            pairs[str(loop)] = (of_loop[is_unbounded].iloc[0], of_loop[~is_unbounded].iloc[0])
    return pairs


def _forecast_error(run: pd.Series) -> float | None:
    """(expected - observed) / observed; None if the pool was never full."""
    expected, observed = run["expected_saturation_s"], run["pool_full_s"]
    if pd.isna(expected) or pd.isna(observed):
        return None
    return float((expected - observed) / observed)


def _early_misses(run: pd.Series, frames: pd.DataFrame) -> float:
    """Share of missed deadlines among those that were due before the pool was full."""
    full_s = run["duration_s"] if pd.isna(run["pool_full_s"]) else run["pool_full_s"]
    early = frames[(frames["run_digest"] == run["run_digest"]) & (frames["deadline_s"] <= full_s)]
    return float(early["missed"].mean())


def _found(
    loop: str, unbounded: pd.Series, bounded: pd.Series, error: float | None, early: float
) -> str:
    full = "never full" if error is None else f"full at {unbounded['pool_full_s']:.0f} s"
    by = "" if error is None else f" (expected {error:+.1%})"
    return (
        f"{loop}, N = {unbounded['num_sessions']}: {full}{by}, {unbounded['verdict']}, "
        f"{early:.1%} missed before; bounded {bounded['verdict']} at "
        f"{bounded['peak_occupancy']:.2f}"
    )
