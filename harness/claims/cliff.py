"""Rules for the claims that one cliff decides: C1c (one step), C2 (trigger), C3 (forecast)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured
from harness.diagnosis.verdicts import Verdict

# "Flat" latency before the step: the answered frames' median, as a share of B.
FLAT_SHARE_OF_BUDGET = 0.25
# "Climbs linearly": share of variance that a line explains, up to the full pool.
LINEAR_R_SQUARED = 0.98
# "Plateaus": growth over the last third, as a share of the pool.
PLATEAU_GROWTH = 0.02
# The paper's own two forecasts are off by 2 % and 13 %.
FORECAST_TOLERANCE = 0.15

_NOT_A_RESULT = {Verdict.invalid.name, Verdict.never_served.name, Verdict.ended_early.name}


def _pair(tables: Tables) -> tuple[pd.Series, pd.Series] | str:
    """The unbounded and the bounded run, or why there is no such pair."""
    runs = tables[""]
    spoiled = runs[runs["verdict"].isin(_NOT_A_RESULT)]
    if len(spoiled):
        first = spoiled.iloc[0]
        return f"the {first['variant']} run is {first['verdict']}: {first['cause']}"
    is_unbounded = runs["retention_kind"] == "unbounded"
    if not is_unbounded.any() or is_unbounded.all():
        return "the table holds no unbounded and bounded pair"
    if runs["schedule_digest"].nunique() != 1:
        return "the two variants were not offered the same schedule"
    return runs[is_unbounded].iloc[0], runs[~is_unbounded].iloc[0]


def one_step(tables: Tables) -> Judgement:
    """C1c: flat latency, then one step to the gateway's limit; bounded flat to the end."""
    pair = _pair(tables)
    if isinstance(pair, str):
        return not_measured(pair)
    unbounded, bounded = pair
    flat_s = FLAT_SHARE_OF_BUDGET * unbounded["frame_budget_s"]
    return from_parts(
        {
            "unbounded collapses": Verdict[unbounded["verdict"]].is_collapse,
            "its answered frames are flat": unbounded["latency_p50_s"] < flat_s,
            "the gateway's latency ends on its limit": bool(unbounded["paper_rule_walled"]),
            "the gateway sees no miss, the deadline does": (
                unbounded["tick_view_miss_share"] == 0 and unbounded["deadline_miss_share"] > 0
            ),
            "bounded is alive with every token delivered": (
                bounded["verdict"] == Verdict.alive.name and bounded["completeness"] == 1.0
            ),
        },
        ours=(
            f"N = {unbounded['num_sessions']}: p50 {unbounded['latency_p50_s'] * 1e3:.0f} ms, then "
            f"silence from {unbounded['silence_onset_s']:.1f} s ({unbounded['verdict']}); "
            f"bounded p50 {bounded['latency_p50_s'] * 1e3:.0f} ms for "
            f"{bounded['duration_s']:.0f} s ({bounded['verdict']})"
        ),
    )


def trigger(tables: Tables) -> Judgement:
    """C2: occupancy climbs linearly to 1.0, then nothing runs and all queue; bounded plateaus."""
    pair = _pair(tables)
    if isinstance(pair, str):
        return not_measured(pair)
    unbounded, bounded = pair
    pool = tables["pool"]
    ours = pool[pool["run_digest"] == unbounded["run_digest"]]
    theirs = pool[pool["run_digest"] == bounded["run_digest"]]
    full_s = unbounded["pool_full_s"]
    rise = ours[(ours["t_s"] >= 0) & (ours["t_s"] <= (full_s if pd.notna(full_s) else np.inf))]
    line = stats.linregress(rise["t_s"], rise["occupancy"])
    tail = ours[ours["t_s"] >= unbounded["duration_s"] - 2 * unbounded["frame_budget_s"]]
    last_third = theirs[theirs["t_s"] >= 2 / 3 * bounded["duration_s"]]["occupancy"]
    plateau = float(last_third.median())
    return from_parts(
        {
            "occupancy climbs linearly": line.rvalue**2 >= LINEAR_R_SQUARED,
            "to a full pool": bool(pd.notna(full_s)),
            "then nothing runs and all N queue, to the end": bool(
                (tail["running"] == 0).all()
                and (tail["waiting"] == unbounded["num_sessions"]).all()
            ),
            "bounded plateaus below a full pool": bool(
                plateau < 1 and last_third.max() - last_third.min() <= PLATEAU_GROWTH
            ),
        },
        ours=(
            f"linear (R2 {line.rvalue**2:.3f}) to {ours['occupancy'].max():.2f}, then "
            f"{tail['running'].max():.0f} running and {tail['waiting'].min():.0f} queued; bounded "
            f"plateaus at {plateau:.2f}"
        ),
    )


def forecast(tables: Tables) -> Judgement:
    """C3: a line through the early trace predicts when the pool is full."""
    pair = _pair(tables)
    if isinstance(pair, str):
        return not_measured(pair)
    unbounded, _ = pair
    predicted, observed = unbounded["predicted_saturation_s"], unbounded["pool_full_s"]
    if pd.isna(predicted) or pd.isna(observed):
        return not_measured("the pool never filled, or the early trace was too short to fit")
    error = (predicted - observed) / observed
    return from_parts(
        {f"within {FORECAST_TOLERANCE:.0%} of the observed time": abs(error) <= FORECAST_TOLERANCE},
        ours=f"{predicted:.1f} s predicted vs {observed:.1f} s measured ({error:+.1%})",
    )
