"""Rule for C8: recycling by the application avoids the wall and pays for it in the tail."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured
from harness.claims.pairs import is_alive, is_collapsed, is_flat, spoiled

KINDS = ("unbounded", "sink_window", "recycle")
# "Above": by how much a recycled tail exceeds the in-engine window's.
ABOVE_FACTOR = 1.1


def re_encodes(tables: Tables) -> Judgement:
    """C8: no wall with recycling, but a tail above the in-engine window's, which stays flat."""
    runs = tables[""]
    if why := spoiled(runs):
        return not_measured(why)
    if sorted(runs["retention_kind"]) != sorted(KINDS):
        return not_measured(f"the table does not hold one run of each of {', '.join(KINDS)}")
    if runs["schedule_digest"].nunique() != 1:
        return not_measured("the variants were not offered the same schedule")
    unbounded, window, recycled = (runs[runs["retention_kind"] == k].iloc[0] for k in KINDS)
    rows = {
        (row["retention_kind"], row["kind"]): row
        for row in tables["latency"].to_dict(orient="records")
    }
    if ("recycle", "begins_request") not in rows:
        return not_measured("no request was recycled in the later half of the run")
    theirs, ours = rows["sink_window", "all"], rows["recycle", "all"]
    first = rows["recycle", "begins_request"]
    return from_parts(
        {
            "unbounded collapses": is_collapsed(unbounded),
            "recycled, the pool is never full and every token comes": bool(
                not is_collapsed(recycled)
                and pd.isna(recycled["pool_full_s"])
                and recycled["completeness"] == 1.0
            ),
            f"its p99 is over {ABOVE_FACTOR:g} times the in-engine window's": bool(
                ours["p99_s"] > ABOVE_FACTOR * theirs["p99_s"]
            ),
            "the in-engine window is alive with every token delivered": is_alive(window),
            "and flat": is_flat(window, "answer"),
        },
        ours=(
            f"N = {unbounded['num_sessions']}: unbounded {unbounded['verdict']}; recycled "
            f"{recycled['verdict']} ({recycled['deadline_miss_share']:.1%} missed), "
            f"{_quantiles(ours)}, of frames that begin a request {_quantiles(first)}; in-engine "
            f"window {window['verdict']}, {_quantiles(theirs)}"
        ),
    )


def _quantiles(row: Mapping[Hashable, Any]) -> str:
    """Example: `p50 600, p90 1200, p99 1900 ms`."""
    parts = (f"{name} {row[f'{name}_s'] * 1e3:.0f}" for name in ("p50", "p90", "p99"))
    return f"{', '.join(parts)} ms"
