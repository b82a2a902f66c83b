"""Is a latency a truthful signal of load? Rank correlation, and how early it warns.

Per run, over frame budgets: x, sessions that are in; y, 95th percentile of the latency of the
frames released then (never answered: larger than any other).
    rho         Spearman's rank correlation of x and y while x changes (the ramp)
    warning_s   first miss minus first budget with y over the target; negative: it warned too late,
                null: it never did, or there was no miss
"""

from __future__ import annotations

import math
import warnings

import pandas as pd
from scipy import stats

from harness.analysis.admission import KEYS

SIGNALS = {"contract": "p95_s", "gateway": "wait_p95_s"}
MIN_BUDGETS = 8


def signal_quality(latency: pd.DataFrame) -> pd.DataFrame:
    """One row a run and signal, from the table of `latency_over_time`."""
    rows = []
    for keys, table in latency.groupby(list(KEYS), sort=False):
        missed = table[table["missed"] > 0]
        first_miss_s = float(missed["t_s"].iloc[0]) if len(missed) else None
        ramp = table[table["t_s"] <= _ramp_end_s(table)]
        for name, column in SIGNALS.items():
            over = table[table[column].fillna(math.inf) > table["target_s"]]
            first_over_s = float(over["t_s"].iloc[0]) if len(over) else None
            warning_s = None
            if first_miss_s is not None and first_over_s is not None:
                warning_s = first_miss_s - first_over_s
            rows.append(
                {
                    **dict(zip(KEYS, keys, strict=True)),
                    "signal": name,
                    "rho": spearman(ramp["live"], ramp[column]),
                    "num_budgets": len(ramp),
                    "first_over_target_s": first_over_s,
                    "first_miss_s": first_miss_s,
                    "warning_s": warning_s,
                }
            )
    return pd.DataFrame(rows)


def spearman(load: pd.Series, latency: pd.Series) -> float | None:
    """Rank correlation; None if there are too few points or one of the two stands still."""
    if len(load) < MIN_BUDGETS or load.nunique() < 2:
        return None
    ranked = latency.fillna(math.inf).rank()
    if ranked.nunique() < 2:
        return 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.ConstantInputWarning)
        return float(stats.spearmanr(load, ranked).statistic)


def _ramp_end_s(table: pd.DataFrame) -> float:
    """The last budget at which the number of sessions still changed."""
    changed = table.loc[table["live"].diff().fillna(1) != 0, "t_s"]
    return float(changed.iloc[-1])
