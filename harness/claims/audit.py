"""Rules for what the authors' published logs say of the wall, next to what they claim of it.

The logs are the clients' alone: engine logs, pool occupancy and token counts are not published.
Verdicts in the tables are names of audit's `ClientVerdict`.
"""

from __future__ import annotations

import pandas as pd

from harness.analysis.proportions import Proportion
from harness.analysis.published import published_series
from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured

PAPER_UNBOUNDED = Proportion(k=14, n=20)
PAPER_BOUNDED = Proportion(k=0, n=20)
PAPER_FORECAST_S = 145.0
FORECAST_TOLERANCE = 0.15
PAPER_MINICPM_STALL_S = 114.0
SINGLE_DIGIT_MS = 10.0


def _share(runs: pd.DataFrame, *verdicts: str) -> str:
    return f"{int(runs['verdict'].isin(verdicts).sum())}/{len(runs)}"


def wall(tables: Tables) -> Judgement:
    """C1: 14/20 against 0/20 by the paper's rule, and what a stricter reading leaves of it."""
    unbounded = published_series(tables, "wall_matrix", variant="unbounded")
    bounded = published_series(tables, "wall_matrix", variant="bounded")
    if unbounded.empty or bounded.empty:
        return not_measured("the published wall matrix is not in the table")
    walled = Proportion(k=int(unbounded["paper_rule_walled"].sum()), n=len(unbounded))
    walled_bounded = Proportion(k=int(bounded["paper_rule_walled"].sum()), n=len(bounded))
    quiet = ("quiet", "quiet_at_boundary")
    judged = from_parts(
        {
            f"unbounded {PAPER_UNBOUNDED.k}/{PAPER_UNBOUNDED.n} by the paper's rule": (
                walled == PAPER_UNBOUNDED
            ),
            f"bounded {PAPER_BOUNDED.k}/{PAPER_BOUNDED.n} by the paper's rule": (
                walled_bounded == PAPER_BOUNDED
            ),
            "no bounded run stalls by ours": not (bounded["verdict"] == "stalled").any(),
            "every unbounded run that did not wall was served to the end": bool(
                (unbounded[~unbounded["paper_rule_walled"]]["verdict"] == "alive").all()
            ),
            "every bounded run was served to the end": bool((bounded["verdict"] == "alive").all()),
        },
        ours=(
            f"unbounded {walled} walled, bounded {walled_bounded}; by ours: unbounded "
            f"{_share(unbounded, 'stalled')} stalled, {_share(unbounded, *quiet)} gone quiet, "
            f"{_share(unbounded, 'never_served', 'ended_early')} never served or cut, "
            f"{_share(unbounded, 'alive')} alive; bounded {_share(bounded, 'quiet_at_boundary')} "
            f"quiet at the max_model_len boundary, {_share(bounded, 'quiet')} before, "
            f"{_share(bounded, 'alive')} alive (client logs only)"
        ),
    )
    return Judgement(
        verdict=judged.verdict, ours=judged.ours, why=judged.why, interval=walled.interval
    )


def one_call(tables: Tables) -> Judgement:
    """C1c: N = 128, one step to the limit; bounded flat for 300 s."""
    runs = published_series(tables, "one_call", num_sessions=128)
    by_variant = {row["variant"]: row for _, row in runs.iterrows()}
    if set(by_variant) != {"unbounded", "bounded"}:
        return not_measured("the published pair at N = 128 is not in the table")
    unbounded, bounded = by_variant["unbounded"], by_variant["bounded"]
    return from_parts(
        {
            "unbounded: milliseconds, then one step to the limit": bool(
                unbounded["verdict"] == "stalled" and unbounded["p50_ms"] < SINGLE_DIGIT_MS
            ),
            "no miss is logged": unbounded["num_missed"] == 0,
            "bounded never reaches the limit": pd.isna(bounded["stall_onset_s"]),
            "bounded is served for 300 s": bounded["verdict"] == "alive",
        },
        ours=(
            f"unbounded p50 {unbounded['p50_ms']:.1f} ms, limit from "
            f"{unbounded['stall_onset_s']:.0f} s; bounded p50 {bounded['p50_ms']:.1f} ms, "
            f"{bounded['verdict_evidence']}"
        ),
    )


def forecast(tables: Tables) -> Judgement:
    """C3: the engine stops when Eq. 1 says, and for N = 96 later by 128/96.

    The early occupancy trace is not published: the fit itself cannot be repeated. When the engine
    stops is read off the clients' step-down, which is when a backlog begins to be drained.
    """
    stalled = published_series(tables, "wall_matrix", variant="unbounded", verdict="stalled")
    stops = stalled.dropna(subset="step_down_s").groupby("num_sessions")["step_down_s"].median()
    if not {96, 128} <= set(stops.index):
        return not_measured("no step-down before a wall is seen at both N")
    error = PAPER_FORECAST_S / stops[128] - 1
    scaled_s = stops[128] * 128 / 96
    scale_error = scaled_s / stops[96] - 1
    return from_parts(
        {
            f"forecast of {PAPER_FORECAST_S:.0f} s at N = 128 within {FORECAST_TOLERANCE:.0%}": (
                abs(error) <= FORECAST_TOLERANCE
            ),
            f"N = 96 later by 128/96, within {FORECAST_TOLERANCE:.0%}": (
                abs(scale_error) <= FORECAST_TOLERANCE
            ),
        },
        ours=(
            f"N = 128: engine stops at {stops[128]:.0f} s in the clients' view (forecast "
            f"{PAPER_FORECAST_S:.0f} s, {error:+.1%}); N = 96: {stops[96]:.0f} s "
            f"({scaled_s:.0f} s by 1/N, {scale_error:+.1%})"
        ),
    )


def minicpm_wall(tables: Tables) -> Judgement:
    """C11: MiniCPM-o stalls at 114 s with no miss; bounded single-digit medians for 600 s."""
    runs = published_series(tables, "minicpm_600")
    by_variant = {row["variant"]: row for _, row in runs.iterrows()}
    if set(by_variant) != {"unbounded", "bounded"}:
        return not_measured("the printed 600 s pair is not in the table")
    unbounded, bounded = by_variant["unbounded"], by_variant["bounded"]
    medians = tables["medians"]
    of_bounded = medians[medians["run"] == bounded["run"]]
    settled = of_bounded[of_bounded["t_s"] > 0]["median_ms"]
    slack_s = unbounded["sample_s"]
    return from_parts(
        {
            f"unbounded stalls at {PAPER_MINICPM_STALL_S:.0f} s, to the window": bool(
                abs(unbounded["stall_onset_s"] - PAPER_MINICPM_STALL_S) <= slack_s
            ),
            "no miss is logged": unbounded["num_missed"] == 0,
            "bounded medians stay in single digits": bool(settled.max() < SINGLE_DIGIT_MS),
            "bounded is served for 600 s": bounded["verdict"] == "alive",
        },
        ours=(
            f"unbounded on the limit from {unbounded['stall_onset_s']:.0f} s (10 s windows); "
            f"bounded medians up to {settled.max():.0f} ms, {bounded['verdict_evidence']}"
        ),
    )
