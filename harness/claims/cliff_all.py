"""Rules for what the cliff on four models decides: C11 (MiniCPM-o) and F1 (the wall travels)."""

from __future__ import annotations

import pandas as pd

from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured
from harness.claims.pairs import is_alive, is_collapsed, is_flat, milliseconds, seconds, spoiled
from harness.diagnosis.verdicts import Verdict

# The paper's setting and what it saw there; a tiny engine is asked for the shape alone.
PAPER_NUM_SESSIONS = 96
PAPER_STALL_S = 114.0
STALL_TOLERANCE = 0.25
SINGLE_DIGIT_S = 0.0095


def _pairs(runs: pd.DataFrame) -> dict[str, tuple[pd.Series, pd.Series]]:
    """The unbounded and the bounded run of each model that has both."""
    pairs = {}
    for model, of_model in runs.groupby("model", sort=False):
        unbounded = of_model[of_model["retention_kind"] == "unbounded"]
        bounded = of_model[of_model["retention_kind"] == "sink_window"]
        if len(unbounded) and len(bounded):
            pairs[str(model)] = (unbounded.iloc[0], bounded.iloc[0])
    return pairs


def minicpm_wall(tables: Tables) -> Judgement:
    """C11: MiniCPM-o stalls with no miss in the gateway's view; bounded it is flat to the end."""
    if why := spoiled(tables[""]):
        return not_measured(why)
    pair = _pairs(tables[""]).get("minicpm_o")
    if pair is None:
        return not_measured("the table holds no MiniCPM-o pair")
    unbounded, bounded = pair
    parts = {
        "unbounded stalls": unbounded["verdict"] == Verdict.stalled.name,
        "without a miss in the gateway's view": unbounded["tick_view_miss_share"] == 0,
        "bounded is alive with every token delivered": is_alive(bounded),
        "and flat": is_flat(bounded, "gateway") and is_flat(bounded, "answer"),
    }
    if unbounded["num_sessions"] == PAPER_NUM_SESSIONS:
        parts["the gateway's median of the bounded is single-digit ms"] = (
            bounded["gateway_late_s"] < SINGLE_DIGIT_S
        )
        parts[f"the stall comes within {STALL_TOLERANCE:.0%} of {PAPER_STALL_S:g} s"] = (
            abs(unbounded["last_token_s"] - PAPER_STALL_S) <= STALL_TOLERANCE * PAPER_STALL_S
        )
    return from_parts(
        parts,
        ours=(
            f"N = {unbounded['num_sessions']}, B = {unbounded['frame_budget_s']:g} s: last token "
            f"at {seconds(unbounded['last_token_s'])} of {unbounded['duration_s']:.0f} s "
            f"({unbounded['verdict']}, {unbounded['deadline_miss_share']:.0%} of frames missed); "
            f"bounded {milliseconds(bounded, 'answer')} to the last token, gateway "
            f"{milliseconds(bounded, 'gateway')} ({bounded['verdict']})"
        ),
    )


def travels(tables: Tables) -> Judgement:
    """F1: the wall travels with the serving path, and so does its cure."""
    if why := spoiled(tables[""]):
        return not_measured(why)
    pairs = _pairs(tables[""])
    if not pairs:
        return not_measured("the table holds no unbounded and bounded pair")
    collapsed = sum(is_collapsed(unbounded) for unbounded, _ in pairs.values())
    alive = sum(is_alive(bounded) for _, bounded in pairs.values())
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
