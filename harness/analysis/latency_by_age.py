"""Latency quantiles by the age of a session and by what it keeps."""

from __future__ import annotations

import numpy as np
import pandas as pd

AGE_BIN_S = 30.0


def by_age(frames: pd.DataFrame) -> pd.DataFrame:
    """One row a variant and half minute: age_s (the bin's middle), p50_s, p90_s of answered frames.

    frames: as harness.analysis.runs.session_frames makes them.
    """
    starts = frames.groupby(["run_digest", "session_id"])["release_s"].transform("min")
    age_bin = (frames["release_s"] - starts) // AGE_BIN_S
    grouped = frames.groupby(["variant", age_bin.rename("bin")], sort=False)["latency_s"]
    table = grouped.quantile(np.array([0.5, 0.9])).unstack().reset_index()
    table.columns = pd.Index(["variant", "bin", "p50_s", "p90_s"])
    return table.assign(age_s=(table["bin"] + 0.5) * AGE_BIN_S).drop(columns="bin")


def late(frames: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """One row a run: p50_s and p90_s over the later half of it, beside its window and verdict."""
    rows = []
    for run in runs.to_dict(orient="records"):
        own = frames[frames["run_digest"] == run["run_digest"]]
        settled = own[own["release_s"] >= run["duration_s"] / 2]["latency_s"]
        rows.append(
            {
                "variant": run["variant"],
                "evidence": run["evidence"],
                "window_tokens": run["retention_window_tokens"],
                "verdict": run["verdict"],
                "p50_s": settled.quantile(0.5),
                "p90_s": settled.quantile(0.9),
            }
        )
    return pd.DataFrame(rows)
