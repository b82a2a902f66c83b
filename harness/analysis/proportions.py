"""Shares of runs, with exact intervals."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from scipy import stats

from harness.diagnosis.verdicts import Verdict


@dataclass(frozen=True, kw_only=True)
class Proportion:
    """k of n, with its Clopper-Pearson interval at 95 %.

    Example: 0 of 20 -> 0 .. 0.168.
    """

    k: int
    n: int

    @property
    def interval(self) -> tuple[float, float]:
        """Exact two-sided interval of the underlying share."""
        found = stats.binomtest(self.k, self.n).proportion_ci(method="exact")
        return float(found.low), float(found.high)

    def __str__(self) -> str:
        """For people. Example: 14/20 (0.46 to 0.88)."""
        low, high = self.interval
        return f"{self.k}/{self.n} ({low:.2f} to {high:.2f})"


def collapse_shares(runs: pd.DataFrame) -> pd.DataFrame:
    """One row an offer, variant and number of calls: runs, collapses, walls, intervals, damage.

    runs: a summary table (harness/analysis/runs.py) with `offer` and `silent_share` of each run.
    runs, invalid: how many are counted, and how many are not since a self-check failed.
    stalled: collapsed runs in which nobody is answered any more. walled: by the paper's rule.
    survivor_misses: deadline misses of the runs that did not collapse, as share of their frames.
    """
    rows = []
    keys = ["offer", "variant", "num_sessions"]
    for (offer, variant, num_sessions), every in runs.groupby(keys, sort=False):
        group = every[every["verdict"] != Verdict.invalid.name]
        if group.empty:
            continue
        collapsed = collapse_share(group)
        walled = wall_share(group)
        survivors = group[~_is_collapsed(group)]
        rows.append(
            {
                "offer": offer,
                "variant": variant,
                "num_sessions": num_sessions,
                "runs": len(group),
                "invalid": len(every) - len(group),
                "collapsed": collapsed.k,
                "collapsed_low": collapsed.interval[0],
                "collapsed_high": collapsed.interval[1],
                "stalled": int((group["verdict"] == Verdict.stalled.name).sum()),
                "walled": walled.k,
                "walled_low": walled.interval[0],
                "walled_high": walled.interval[1],
                "misses_median": group["deadline_miss_share"].median(),
                "survivor_misses": survivors["deadline_miss_share"].mean(),
                "survivors_with_misses": int((survivors["deadline_miss_share"] > 0).sum()),
                "silent_share_median": group["silent_share"].median(),
                "silence_onset_median_s": group["silence_onset_s"].median(),
                "pool_full_median_s": group["pool_full_s"].median(),
                "last_token_median_s": group["last_token_s"].median(),
            }
        )
    return pd.DataFrame(rows)


def collapse_share(runs: pd.DataFrame) -> Proportion:
    """How many of the runs of a summary table collapsed."""
    return Proportion(k=int(_is_collapsed(runs).sum()), n=len(runs))


def wall_share(runs: pd.DataFrame) -> Proportion:
    """How many of them the paper's rule counts as walled."""
    return Proportion(k=int(runs["paper_rule_walled"].fillna(False).sum()), n=len(runs))


def _is_collapsed(runs: pd.DataFrame) -> pd.Series:
    return runs["verdict"].map(lambda name: Verdict[name].is_collapse).astype(bool)
