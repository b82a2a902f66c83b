"""Rules for what conversations decide: C7 (free-running speech) and C6 (turns)."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured

# A baseline below this says that the model cannot do the task, not that forgetting hurts.
LEAST_BASELINE = 0.3
# "Decays to 0".
NOTHING = 0.1
# "At or above unbounded": late shares this close count as equal.
TOLERANCE = 0.1
EQUIVALENT_P = 0.05


def free_running(tables: Tables) -> Judgement:
    """C7: without sinks late answers fall to nothing; with them they stay with unbounded's."""
    shares = tables.get("shares")
    if shares is None or shares.empty:
        return not_measured("no session was older than its window")
    unbounded = shares[~shares["is_bounded"]].set_index("window_tokens")["late_answered"]
    none = shares[shares["is_bounded"] & (shares["sink_tokens"] == 0)]
    some = shares[shares["is_bounded"] & (shares["sink_tokens"] > 0)]
    if unbounded.empty or none.empty or some.empty:
        return not_measured("the table lacks unbounded, window-only or sink rows")
    if unbounded.min() < LEAST_BASELINE:
        return not_measured(
            f"unbounded answers {unbounded.min():.0%} late, below {LEAST_BASELINE:.0%}: the model "
            "is too weak for the question"
        )
    first = some.sort_values("sink_tokens").drop_duplicates("window_tokens")
    deep = some.drop(first.index)
    deep = deep[deep["pins_said"]]
    behind = first["window_tokens"].map(unbounded) - first["late_answered"]
    ours = "; ".join(
        [f"unbounded {value:.0%} (past W={window:.0f})" for window, value in unbounded.items()]
        + [
            f"W={row['window_tokens']:.0f}, S={row['sink_tokens']:.0f}: {row['late_answered']:.0%}"
            for row in shares[shares["is_bounded"]].to_dict(orient="records")
        ]
        + [f"first question recalled at the end: {_recalled(shares)}"]
    )
    parts = {
        f"without sinks late answers fall to {NOTHING:.0%} or less": bool(
            (none["late_answered"] <= NOTHING).all()
        ),
        f"with one block of sinks they stay within {TOLERANCE:.0%} of unbounded, or above": bool(
            (behind <= TOLERANCE).all()
        ),
    }
    if len(deep):
        best = deep["window_tokens"].map(first.set_index("window_tokens")["late_answered"])
        parts["a pin that reaches into generated tokens answers less"] = bool(
            (deep["late_answered"] < best - TOLERANCE).all()
        )
    return from_parts(parts, ours=ours)


def _recalled(shares: pd.DataFrame) -> str:
    rows = shares.drop_duplicates("variant").to_dict(orient="records")
    return ", ".join(f"{row['variant']} {row['recalled']:.0%}" for row in rows)


def turns(tables: Tables) -> Judgement:
    """C6: in turns every session answers, and a window answers as unbounded does."""
    found = tables.get("equivalence")
    if found is None or found.empty:
        return not_measured("the table holds no unbounded and bounded pair with late turns")
    rows = found.to_dict(orient="records")
    alone = [row for row in rows if not row["sink_tokens"]]
    sinks = [row for row in rows if row["sink_tokens"]]
    if not alone:
        return not_measured("no window without sinks was asked")
    if alone[0]["unbounded_answered"] < LEAST_BASELINE:
        return not_measured("unbounded hardly answers: the model is too weak for the question")
    equal = f"as unbounded within {alone[0]['margin']:.0%} (TOST, p <= 0.05)"
    parts = {
        "with a window every session answers": all(
            row["answering_sessions"] == row["sessions"] for row in alone
        ),
        f"a window answers {equal}": all(row["p_value"] <= EQUIVALENT_P for row in alone),
    }
    if sinks:
        parts[f"a window with sinks answers {equal}"] = all(
            row["p_value"] <= EQUIVALENT_P for row in sinks
        )
    ours = f"late turns answered: unbounded {alone[0]['unbounded_answered']:.0%}; " + "; ".join(
        f"W={row['window_tokens']:.0f}, S={row['sink_tokens']:.0f}: {row['bounded_answered']:.0%}, "
        f"{row['answering_sessions']}/{row['sessions']} sessions (p = {row['p_value']:.2g})"
        for row in rows
    )
    judged = from_parts(parts, ours=ours)
    return replace(judged, interval=(float(alone[0]["low"]), float(alone[0]["high"])))
