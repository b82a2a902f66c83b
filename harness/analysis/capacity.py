"""From the tries of a search to a capacity, and to what binds it."""

from __future__ import annotations

import pandas as pd

# A part that is busy for this share of the time makes its queue the latency.
BUSY_INGEST = 0.9
BUSY_ENCODER = 0.5


def capacities(runs: pd.DataFrame) -> pd.DataFrame:
    """One row a model and variant: largest N served, smallest above it that was not, what binds.

    runs: summaries with `served`, loads and ceilings (harness/experiments/capacity.py).
    """
    rows = []
    for (model, variant), tries in runs.groupby(["model", "variant"], sort=False):
        served = tries[tries["served"]]
        largest = served["num_sessions"].max() if len(served) else None
        failed = tries[~tries["served"] & (tries["num_sessions"] > (largest or 0))]
        limit = failed.sort_values("num_sessions").iloc[0] if len(failed) else None
        first = tries.iloc[0]
        rows.append(
            {
                "model": model,
                "variant": variant,
                "evidence": first["evidence"],
                "step_evidence": first["step_evidence"],
                "served_sessions": largest,
                "failed_sessions": None if limit is None else limit["num_sessions"],
                "binds": None if limit is None else what_binds(limit),
                "memory_ceiling": first["memory_ceiling"],
                "bounded_ceiling": first["bounded_ceiling"],
                "num_tries": len(tries),
                "horizon_s": first["duration_s"],
            }
        )
    return pd.DataFrame(rows)


def what_binds(run: pd.Series) -> str:
    """Why a run was not served: the first of memory, front end, encoder and deadline that fits.

    memory: the pool was full or a session was preempted before the first miss. front end, encoder:
    busy for at least 90 % and 50 % of the time. deadline: decode steps were too long.
    """
    first_miss_s = run["first_miss_s"]
    for instant in (run["pool_full_s"], run["first_preemption_s"]):
        if pd.notna(instant) and (pd.isna(first_miss_s) or instant <= first_miss_s):
            return "memory"
    if run["ingest_load"] >= BUSY_INGEST:
        return "front end"
    if run["encoder_load"] >= BUSY_ENCODER:
        return "encoder"
    return "deadline"
