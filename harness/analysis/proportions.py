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
    """One row a variant and number of calls: runs, collapses, walls by the paper's rule, intervals.

    runs: a summary table (harness/analysis/runs.py).
    """
    rows = []
    for (variant, num_sessions), group in runs.groupby(["variant", "num_sessions"], sort=False):
        collapsed = collapse_share(group)
        walled = Proportion(k=int(group["paper_rule_walled"].fillna(False).sum()), n=len(group))
        rows.append(
            {
                "variant": variant,
                "num_sessions": num_sessions,
                "runs": len(group),
                "collapsed": collapsed.k,
                "collapsed_low": collapsed.interval[0],
                "collapsed_high": collapsed.interval[1],
                "walled": walled.k,
                "walled_low": walled.interval[0],
                "walled_high": walled.interval[1],
                "misses_median": group["deadline_miss_share"].median(),
                "silence_onset_median_s": group["silence_onset_s"].median(),
                "pool_full_median_s": group["pool_full_s"].median(),
            }
        )
    return pd.DataFrame(rows)


def collapse_share(runs: pd.DataFrame) -> Proportion:
    """How many of the runs of a summary table collapsed."""
    collapsed = runs["verdict"].map(lambda name: Verdict[name].is_collapse)
    return Proportion(k=int(collapsed.sum()), n=len(runs))
