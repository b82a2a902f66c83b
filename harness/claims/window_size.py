"""Rule for C9: windows up to 2048 cost the same, 4096 more."""

from __future__ import annotations

from dataclasses import replace

from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured
from harness.diagnosis.verdicts import Verdict

SMALL = (512, 1024, 2048)
LARGE = 4096
# "Flat": highest over lowest of the small windows. "Rises": over the highest of those.
FLAT_FACTOR = 1.1
RISE_FACTOR = 2.0


def latency(tables: Tables) -> Judgement:
    """C9: the 90th percentile of latency is flat up to W = 2048 and rises at 4096.

    Other windows, as a tiny engine's, are shown and decide nothing.
    """
    late = tables.get("late")
    if late is None or late.empty:
        return not_measured("no run was recorded")
    spoiled = late[late["verdict"] != Verdict.alive.name]
    if len(spoiled):
        first = spoiled.iloc[0]
        return not_measured(f"the {first['variant']} run is {first['verdict']}")
    p90 = late.dropna(subset="window_tokens").set_index("window_tokens")["p90_s"].sort_index()
    ours = "p90 once every window is full: " + ", ".join(
        f"W = {window:.0f}: {value * 1e3:.0f} ms" for window, value in p90.items()
    )
    if not {*SMALL, LARGE} <= set(p90.index):
        return replace(not_measured("the table lacks one of the paper's windows"), ours=ours)
    small = p90.loc[list(SMALL)]
    return from_parts(
        {
            f"p90 is flat within {FLAT_FACTOR - 1:.0%} at W = 512, 1024, 2048": bool(
                small.max() <= FLAT_FACTOR * small.min()
            ),
            f"and at least {RISE_FACTOR:g} times as high at W = {LARGE}": bool(
                p90.loc[LARGE] >= RISE_FACTOR * small.max()
            ),
        },
        ours=ours,
    )
