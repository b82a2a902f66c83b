"""Rule for N1 (ours): whether the N* that a controller settles at is the system's own."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from harness.analysis.schedulable import interval_of
from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured

# Medians further apart than this differ; the authors' own ramps differ by 19 %.
SAME_WITHIN = 0.1


def property_of_the_system(tables: Tables) -> Judgement:
    """N1: N*(AIMD) is the same over ramps and targets, and is the schedulable concurrency."""
    if "bias" not in tables:
        return not_measured("no ramp left a recording")
    bias, truth = tables["bias"], tables["truth"]
    bounded = bias[bias["retention_kind"] != "unbounded"]
    bounded, censored = bounded[~bounded["is_censored"]], bounded[bounded["is_censored"]]
    known = interval_of(truth[truth["retention_kind"] != "unbounded"])
    if bounded.empty or known is None:
        return not_measured("the table holds no bounded ramps, or no bounded N* was found")
    median, low, high = known
    over_ramps = bounded.groupby("target_s")["median"].apply(spread_of)
    over_targets = bounded.groupby("arrival_rate_per_s")["median"].apply(spread_of)
    agrees_over_ramps = bool((over_ramps <= SAME_WITHIN).all())
    agrees_over_targets = len(over_ramps) > 1 and bool((over_targets <= SAME_WITHIN).all())
    judgement = from_parts(
        {
            f"over ramps the medians agree within {SAME_WITHIN:.0%}": agrees_over_ramps,
            f"over targets, too ({len(over_ramps)} of them)": agrees_over_targets,
            f"they are the schedulable concurrency within {SAME_WITHIN:.0%}": bool(
                (bounded["bias"].abs() <= SAME_WITHIN).all()
            ),
        },
        ours=(
            f"schedulable: {median:.0f} ({low:.0f} to {high:.0f}); AIMD settles at "
            + "; ".join(
                f"{group['median'].min():.0f} to {group['median'].max():.0f} over ramps of "
                f"{group['arrival_rate_per_s'].min():g} to {group['arrival_rate_per_s'].max():g} a "
                f"second (target {target_s:g} s, bias {group['bias'].min():+.0%} to "
                f"{group['bias'].max():+.0%})"
                for target_s, group in bounded.groupby("target_s")
            )
            + (f"; {len(censored)} ramps ended before anybody was shed" if len(censored) else "")
            + f"; the authors: {_authors(tables['paper'])}"
        ),
    )
    depends_on = [
        name
        for name, agrees in (("ramp", agrees_over_ramps), ("target", agrees_over_targets))
        if not agrees
    ]
    if depends_on and len(over_ramps) > 1:
        finding = f"where AIMD settles is a property of the {' and of the '.join(depends_on)}"
        return replace(judgement, why=f"{finding}; {judgement.why}")
    return judgement


def spread_of(medians: pd.Series) -> float:
    """Largest over smallest, minus 1. Example: 175 and 209 -> 0.19."""
    return float(medians.max() / medians.min() - 1)


def _authors(paper: pd.DataFrame) -> str:
    shown = paper[paper["variant"] != "unbounded"].sort_values("admitted")
    return ", ".join(f"{ramp.admitted} of {ramp.offered}" for ramp in shown.itertuples())
