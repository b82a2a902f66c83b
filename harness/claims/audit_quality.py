"""Rule for what the authors' published quality probes say of sinks: C7.

A probe is one five-minute call of 32 sessions that are asked something every 30 s. Segment 0 is the
opening; segments 1 to 7 are the middle of the call; its share is correct / answered.
"""

from __future__ import annotations

import pandas as pd
from scipy import stats

from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured

MID_CALL = range(1, 8)
EARLY, LATE = range(1, 4), range(4, 8)
# "Decays to 0": of those who answer late in the call, at most this share does so correctly.
DECAYED_SHARE = 0.10
# A late share is called lower than an early one at this one-sided level of Fisher's exact test.
SIGNIFICANCE = 0.05


def sinks(tables: Tables) -> Judgement:
    """C7: without sinks every window decays; with them age-independent, at or above unbounded."""
    probes = tables["probes"]
    if probes.empty or not probes["window_tokens"].isna().any():
        return not_measured("the published probes are not in the table")
    groups = {str(name): group for name, group in probes.groupby("probe")}
    kept = {name: group.iloc[0] for name, group in groups.items()}
    unbounded = next(name for name, row in kept.items() if pd.isna(row["window_tokens"]))
    bare = [n for n, row in kept.items() if n != unbounded and row["sink_tokens"] == 0]
    with_sinks = [n for n, row in kept.items() if row["sink_tokens"] > 0]
    if not bare or not with_sinks:
        return not_measured("the probes with and without sinks are not both in the table")
    floor = _share(groups[unbounded], MID_CALL)
    mid = {name: _share(groups[name], MID_CALL) for name in with_sinks}
    below = [_kept(kept[name]) for name in with_sinks if mid[name] < floor]
    ageing = [_kept(kept[name]) for name in with_sinks if _is_ageing(groups[name])]
    return from_parts(
        {
            "without sinks every window decays": all(
                _share(groups[name], LATE) <= DECAYED_SHARE for name in bare
            ),
            f"with sinks at or above unbounded (not: {', '.join(below) or 'none'})": not below,
            f"with sinks age-independent (not: {', '.join(ageing) or 'none'})": not ageing,
        },
        ours=(
            f"correct mid-call: unbounded {floor:.0%}; "
            + ", ".join(f"{_kept(kept[name])} {mid[name]:.0%}" for name in with_sinks)
            + "; late in the call without sinks "
            + ", ".join(f"{_kept(kept[name])} {_share(groups[name], LATE):.0%}" for name in bare)
        ),
    )


def _share(probe: pd.DataFrame, segments: range) -> float:
    chosen = probe[probe["segment"].isin(segments)]
    return float(chosen["correct"].sum() / max(chosen["answered"].sum(), 1))


def _is_ageing(probe: pd.DataFrame) -> bool:
    """Whether late answers are correct significantly less often than early ones."""
    counts = []
    for segments in (EARLY, LATE):
        chosen = probe[probe["segment"].isin(segments)]
        correct, answered = int(chosen["correct"].sum()), int(chosen["answered"].sum())
        counts.append([correct, answered - correct])
    return bool(stats.fisher_exact(counts, alternative="greater").pvalue < SIGNIFICANCE)


def _kept(row: pd.Series) -> str:
    return f"W={row['window_tokens']:.0f},S={row['sink_tokens']:.0f}"
