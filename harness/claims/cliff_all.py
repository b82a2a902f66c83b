"""Rules for what the cliff on four models decides: C11 (MiniCPM-o) and F1 (the wall travels)."""

from __future__ import annotations

import pandas as pd

from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured
from harness.diagnosis.verdicts import Verdict

# "Single-digit milliseconds" is a GPU's; flat on any machine is a median well inside the budget.
FLAT_SHARE_OF_BUDGET = 0.25


def _pairs(runs: pd.DataFrame) -> dict[str, tuple[pd.Series, pd.Series]]:
    """The unbounded and the bounded run of each model that has both."""
    pairs = {}
    for model, of_model in runs.groupby("model", sort=False):
        unbounded = of_model[of_model["retention_kind"] == "unbounded"]
        bounded = of_model[of_model["retention_kind"] == "sink_window"]
        if len(unbounded) and len(bounded):
            pairs[str(model)] = (unbounded.iloc[0], bounded.iloc[0])
    return pairs


def _collapsed(run: pd.Series) -> bool:
    return Verdict[run["verdict"]].is_collapse


def _alive(run: pd.Series) -> bool:
    return bool(run["verdict"] == Verdict.alive.name and run["completeness"] == 1.0)


def minicpm_wall(tables: Tables) -> Judgement:
    """C11: MiniCPM-o stalls with no miss in the gateway's view; bounded it is flat to the end."""
    pair = _pairs(tables[""]).get("minicpm_o")
    if pair is None:
        return not_measured("the table holds no MiniCPM-o pair")
    unbounded, bounded = pair
    flat_s = FLAT_SHARE_OF_BUDGET * bounded["frame_budget_s"]
    return from_parts(
        {
            "unbounded stalls": unbounded["verdict"] == Verdict.stalled.name,
            "without a miss in the gateway's view": unbounded["tick_view_miss_share"] == 0,
            "bounded is alive with every token delivered": _alive(bounded),
            "and flat": bounded["latency_p50_s"] < flat_s,
        },
        ours=(
            f"N = {unbounded['num_sessions']}, B = {unbounded['frame_budget_s']:g} s: last token "
            f"at {unbounded['last_token_s']:.1f} of {unbounded['duration_s']:.0f} s "
            f"({unbounded['verdict']}); bounded p50 {bounded['latency_p50_s'] * 1e3:.0f} ms "
            f"({bounded['verdict']})"
        ),
    )


def travels(tables: Tables) -> Judgement:
    """F1: the wall travels with the serving path, and so does its cure."""
    pairs = _pairs(tables[""])
    if not pairs:
        return not_measured("the table holds no unbounded and bounded pair")
    collapsed = sum(_collapsed(unbounded) for unbounded, _ in pairs.values())
    alive = sum(_alive(bounded) for _, bounded in pairs.values())
    return from_parts(
        {
            "every unbounded model collapses": collapsed == len(pairs),
            "every bounded one is alive with every token delivered": alive == len(pairs),
        },
        ours=(
            f"{collapsed}/{len(pairs)} unbounded collapse, {alive}/{len(pairs)} bounded alive "
            f"({', '.join(pairs)})"
        ),
    )
