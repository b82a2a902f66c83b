"""The true schedulable concurrency from a search's tries, and how far a controller is from it."""

from __future__ import annotations

import pandas as pd


def true_concurrency(runs: pd.DataFrame) -> pd.DataFrame:
    """One row a variant and seed: largest N served, smallest N above it that was not.

    runs: summaries with `served`, null for runs that are no try. `served_sessions` is null if no N
    was served, `failed_sessions` if every one was: N* is then below, or at least, the other.
    """
    rows = []
    tries = runs[runs["served"].notna()]
    for (variant, seed), group in tries.groupby(["variant", "seed"], sort=False):
        served = group["served"].astype(bool)
        largest = group.loc[served, "num_sessions"].max()
        above = group["num_sessions"] > (largest if served.any() else 0)
        rows.append(
            {
                "variant": variant,
                "retention_kind": group["retention_kind"].iloc[0],
                "seed": seed,
                "served_sessions": largest if served.any() else None,
                "failed_sessions": group.loc[~served & above, "num_sessions"].min(),
                "horizon_s": group["duration_s"].iloc[0],
                "num_tries": len(group),
            }
        )
    columns = ["variant", "retention_kind", "seed", "served_sessions", "failed_sessions"]
    return pd.DataFrame(rows, columns=[*columns, "horizon_s", "num_tries"])


def interval_of(truth: pd.DataFrame) -> tuple[float, float, float] | None:
    """(median, lowest, highest) of N* over the seeds of one variant; None without a served N.

    Lowest is the smallest N that a seed's search found served, highest the largest below one that
    it found not served.
    """
    served = truth["served_sessions"].dropna().astype(float)
    if served.empty:
        return None
    failed = truth["failed_sessions"].dropna().astype(float)
    highest = failed.max() - 1 if len(failed) == len(truth) else float("inf")
    return float(served.median()), float(served.min()), float(highest)


def controller_bias(runs: pd.DataFrame, truth: pd.DataFrame) -> pd.DataFrame:
    """One row a variant, target and ramp: N*(controller) over seeds against the true one.

    bias: median over the truth's median, minus 1. spread: interquartile range over the median.
    overshoot: share of seeds in which more were in at a time than the truth's highest.
    is_censored: in half the seeds nobody was shed, so the ramp ended before the controller spoke.
    """
    ramps = runs[runs["settled_sessions"].notna()]
    rows = []
    keys = ["variant", "retention_kind", "target_s", "arrival_rate_per_s"]
    for (variant, kind, target_s, rate), group in ramps.groupby(keys, sort=True):
        settled = group["settled_sessions"]
        known = interval_of(truth[truth["variant"] == variant])
        rows.append(
            {
                "variant": variant,
                "retention_kind": kind,
                "target_s": target_s,
                "arrival_rate_per_s": rate,
                "num_seeds": group["seed"].nunique(),
                "median": settled.median(),
                "q25": settled.quantile(0.25),
                "q75": settled.quantile(0.75),
                "lowest": settled.min(),
                "highest": settled.max(),
                "spread": (settled.quantile(0.75) - settled.quantile(0.25)) / settled.median(),
                "bias": settled.median() / known[0] - 1 if known else None,
                "overshoot": (group["most_sessions"] > known[2]).mean() if known else None,
                "converged_median_s": group["converged_s"].median(),
                "harmed_median": group["harmed_before"].median(),
                "missed_after_median": group["missed_after"].median(),
                "is_censored": bool((group["shed"] == 0).mean() >= 0.5),
            }
        )
    return pd.DataFrame(rows)
