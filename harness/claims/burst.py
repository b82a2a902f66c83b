"""Rule for C1b: a burst of 90 s is flat, whatever the number of calls."""

from __future__ import annotations

import pandas as pd

from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured
from harness.claims.pairs import is_alive, is_collapsed, is_flat, spoiled

BURST_S = 90.0
# The paper's bursts: 2 to 8 ms by its metric.
SINGLE_DIGIT_S = 0.0095


def flat(tables: Tables) -> Judgement:
    """C1b: flat for both variants, by the paper's metric and by ours."""
    runs = tables[""]
    if why := spoiled(runs):
        return not_measured(why)
    bursts = [run for _, run in runs[runs["duration_s"] == BURST_S].iterrows()]
    longer = runs[runs["duration_s"] > BURST_S]
    if not bursts:
        return not_measured(f"the table holds no run of {BURST_S:g} s")
    sizes = sorted({int(run["num_sessions"]) for run in bursts})
    drifting = [run for run in bursts if not is_flat(run, "answer")]
    dead = [run for _, run in longer.iterrows() if is_collapsed(run)]
    ends_s = longer["duration_s"].max()
    return from_parts(
        {
            "every burst is flat, in single-digit ms, by the paper's metric": all(
                is_flat(run, "gateway") and run["gateway_late_s"] < SINGLE_DIGIT_S for run in bursts
            ),
            "every burst is alive with every token delivered": all(map(is_alive, bursts)),
            "release to last token is flat, too": not drifting,
        },
        ours=(
            f"N = {', '.join(map(str, sizes))}: {sum(map(is_alive, bursts))} of {len(bursts)} "
            f"bursts alive; release to last token drifts in {_names(drifting)}"
            + (
                f"; after {ends_s:g} s, calls are silent in {_names(dead)}"
                if pd.notna(ends_s)
                else ""
            )
        ),
    )


def _names(runs: list[pd.Series]) -> str:
    """Which runs, for people. Example: `unbounded at N = 96, 128`."""
    if not runs:
        return "none"
    sizes: dict[str, list[str]] = {}
    for run in runs:
        kind = "unbounded" if run["retention_kind"] == "unbounded" else "bounded"
        sizes.setdefault(kind, []).append(str(int(run["num_sessions"])))
    return " and ".join(f"{kind} at N = {', '.join(found)}" for kind, found in sizes.items())
