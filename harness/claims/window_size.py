"""Rule for C9: windows up to 2048 cost the same, 4096 more."""

from __future__ import annotations

from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured
from harness.diagnosis.verdicts import Verdict

# The paper's windows are 512, 1024, 2048 and, the large one, 4096: the largest is the large one.
NUM_WINDOWS = 4
# "Flat": highest over lowest of the small windows; live ones scatter. "Rises": over the highest.
FLAT_FACTOR = 1.1
LIVE_FLAT_FACTOR = 1.25
RISE_FACTOR = 2.0


def latency(tables: Tables) -> Judgement:
    """C9: the 90th percentile of latency is flat over all windows but the largest, and rises there.

    On a tiny engine the windows are smaller than the paper's, and attention over them is cheap.
    """
    late = tables.get("late")
    if late is None or late.empty:
        return not_measured("no run was recorded")
    spoiled = late[late["verdict"] != Verdict.alive.name]
    if len(spoiled):
        first = spoiled.iloc[0]
        return not_measured(f"the {first['variant']} run is {first['verdict']}")
    p90 = late.dropna(subset="window_tokens").set_index("window_tokens")["p90_s"].sort_index()
    if len(p90) < NUM_WINDOWS:
        return not_measured(f"the table holds {len(p90)} windows, not {NUM_WINDOWS}")
    is_live = late["evidence"].str.startswith("live").any()
    factor = LIVE_FLAT_FACTOR if is_live else FLAT_FACTOR
    small, large, largest = p90.iloc[:-1], p90.iloc[-1], p90.index[-1]
    names = ", ".join(f"{window:.0f}" for window in small.index)
    return from_parts(
        {
            f"p90 is flat within {factor - 1:.0%} at W = {names}": bool(
                small.max() <= factor * small.min()
            ),
            f"and at least {RISE_FACTOR:g} times as high at W = {largest:.0f}": bool(
                large >= RISE_FACTOR * small.max()
            ),
        },
        ours="p90 once every window is full: "
        + ", ".join(f"W = {window:.0f}: {value * 1e3:.0f} ms" for window, value in p90.items()),
    )
