"""Rules for the claims that one pair of runs decides: C1c (one step), C2 (trigger), C3 (forecast).

The same rules judge every evidence class: a tiny live cliff, and the paper's own setting.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured
from harness.claims.pairs import is_alive, is_collapsed, is_flat, milliseconds, pair_of, seconds

# "Climbs linearly": share of variance that a line explains, up to the full pool.
LINEAR_R_SQUARED = 0.98
# "Plateaus": growth over the last third, as a share of the pool.
PLATEAU_GROWTH = 0.02
# The paper's plateau, "near 0.25"; it belongs to its own setting.
PAPER_PLATEAU = 0.25
NEAR = 0.03
# The paper's own two forecasts are off by 2 % and 13 %.
FORECAST_TOLERANCE = 0.15


def one_step(tables: Tables) -> Judgement:
    """C1c: flat latency, then one step to the gateway's limit; bounded flat to the end."""
    pair = pair_of(tables[""])
    if isinstance(pair, str):
        return not_measured(pair)
    unbounded, bounded = pair
    return from_parts(
        {
            "unbounded collapses": is_collapsed(unbounded),
            "until then the gateway's latency is flat": is_flat(unbounded, "gateway"),
            "and so is release to last token": is_flat(unbounded, "answer"),
            "then the gateway's median steps to its limit": bool(unbounded["paper_rule_walled"]),
            "the gateway sees no miss, the deadline does": (
                unbounded["tick_view_miss_share"] == 0 and unbounded["deadline_miss_share"] > 0
            ),
            "bounded is alive with every token delivered": is_alive(bounded),
            "and flat": is_flat(bounded, "gateway") and is_flat(bounded, "answer"),
        },
        ours=(
            f"N = {unbounded['num_sessions']}: release to last token "
            f"{milliseconds(unbounded, 'answer')} (gateway {milliseconds(unbounded, 'gateway')}), "
            f"first silence: {seconds(unbounded['silence_onset_s'])} ({unbounded['verdict']}: "
            f"{unbounded['deadline_miss_share']:.0%} of frames missed); bounded "
            f"{milliseconds(bounded, 'answer')} for {bounded['duration_s']:.0f} s "
            f"({bounded['verdict']})"
        ),
    )


def trigger(tables: Tables) -> Judgement:
    """C2: occupancy climbs linearly to 1.0, then nothing runs and all queue; bounded plateaus."""
    pair = pair_of(tables[""])
    if isinstance(pair, str):
        return not_measured(pair)
    unbounded, bounded = pair
    pool = tables["pool"]
    ours = pool[pool["run_digest"] == unbounded["run_digest"]]
    theirs = pool[pool["run_digest"] == bounded["run_digest"]]
    full_s = unbounded["pool_full_s"]
    rise = ours[(ours["t_s"] >= 0) & (ours["t_s"] <= (full_s if pd.notna(full_s) else np.inf))]
    line = stats.linregress(rise["t_s"], rise["occupancy"])
    # The last frame period that was offered; after it an idle engine says nothing.
    end_s, budget_s = unbounded["duration_s"], unbounded["frame_budget_s"]
    tail = ours[ours["t_s"].between(end_s - 2 * budget_s, end_s)]
    last_third = theirs[theirs["t_s"].between(2 / 3 * end_s, end_s)]["occupancy"]
    plateau = float(last_third.median())
    parts = {
        "occupancy climbs linearly": line.rvalue**2 >= LINEAR_R_SQUARED,
        "to a full pool": bool(pd.notna(full_s)),
        "then nothing runs and all N queue, to the end": bool(
            (tail["running"] == 0).all() and (tail["waiting"] == unbounded["num_sessions"]).all()
        ),
        "bounded plateaus below a full pool": bool(
            plateau < 1 and last_third.max() - last_third.min() <= PLATEAU_GROWTH
        ),
    }
    if _is_papers_setting(bounded):
        parts[f"near {PAPER_PLATEAU}"] = abs(plateau - PAPER_PLATEAU) <= NEAR
    return from_parts(
        parts,
        ours=(
            f"linear (R2 {line.rvalue**2:.3f}) to {ours['occupancy'].max():.2f} (full: "
            f"{seconds(full_s)}); at the end {tail['running'].max():.0f} running and "
            f"{tail['waiting'].min():.0f} of "
            f"{unbounded['num_sessions']} queued; bounded plateaus at {plateau:.2f}"
        ),
    )


def forecast(tables: Tables) -> Judgement:
    """C3: a line through the early trace predicts when the pool is full."""
    pair = pair_of(tables[""])
    if isinstance(pair, str):
        return not_measured(pair)
    unbounded, _ = pair
    predicted, observed = unbounded["predicted_saturation_s"], unbounded["pool_full_s"]
    if pd.isna(predicted) or pd.isna(observed):
        return not_measured("the pool never filled, or the early trace was too short to fit")
    error = (predicted - observed) / observed
    interval = _interval(tables, unbounded["run_digest"])
    words = "too few frames for an interval"
    if interval is not None:
        low, high = interval
        where = "inside" if low <= observed <= high else "outside"
        words = f"{where} {low:.1f} to {high:.1f} s"
    return from_parts(
        {f"within {FORECAST_TOLERANCE:.0%} of the observed time": abs(error) <= FORECAST_TOLERANCE},
        ours=f"{predicted:.1f} s predicted vs {observed:.1f} s measured ({error:+.1%}; {words})",
        interval=interval,
    )


def _is_papers_setting(run: pd.Series) -> bool:
    return bool(
        run["model"] == "qwen3_omni"
        and run["num_sessions"] == 128
        and run["retention_window_tokens"] == 1024
    )


def _interval(tables: Tables, run_digest: str) -> tuple[float, float] | None:
    """The forecast's interval, from the part of the tables that analysis/forecast.py makes."""
    table = tables.get("forecast")
    if table is None or table.empty:
        return None
    row = table[(table["run_digest"] == run_digest) & table["is_asked"]]
    if row.empty or pd.isna(row["low_s"].iloc[0]):
        return None
    return float(row["low_s"].iloc[0]), float(row["high_s"].iloc[0])
