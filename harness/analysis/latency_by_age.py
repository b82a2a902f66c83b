"""Latency quantiles by the age of a session and by what it keeps."""

from __future__ import annotations

import numpy as np
import pandas as pd

NUM_AGE_BINS = 10


def by_age(frames: pd.DataFrame) -> pd.DataFrame:
    """One row a variant and tenth of the longest age: age_s (its middle), p50_s, p90_s, p99_s.

    Of answered frames; null where there were none.

    frames: as harness.analysis.runs.session_frames makes them.
    """
    starts = frames.groupby(["run_digest", "session_id"])["release_s"].transform("min")
    age_s = frames["release_s"] - starts
    width_s = float(np.nextafter(age_s.max(), np.inf)) / NUM_AGE_BINS
    age_bin = age_s // width_s
    grouped = frames.groupby(["variant", age_bin.rename("bin")], sort=False)["latency_s"]
    table = grouped.quantile(np.array([0.5, 0.9, 0.99])).unstack().reset_index()
    table.columns = pd.Index(["variant", "bin", "p50_s", "p90_s", "p99_s"])
    return table.assign(age_s=(table["bin"] + 0.5) * width_s).drop(columns="bin")


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
