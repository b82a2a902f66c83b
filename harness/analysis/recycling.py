"""Latency of frames that begin a recycled request, beside that of all others."""

from __future__ import annotations

import pandas as pd

QUANTILES = {"p50_s": 0.5, "p90_s": 0.9, "p99_s": 0.99}


def latency_by_frame_kind(frames: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """One row a run and kind of frame, over the later half of the run.

    kind: all | begins_request | other, the last two for recycled runs only.
    p50_s, p90_s, p99_s: of answered frames; answered, missed: shares of the offered ones.
    frames: with `begins_request`.
    """
    rows = []
    for run in runs.to_dict(orient="records"):
        own = frames[frames["run_digest"] == run["run_digest"]]
        settled = own[own["release_s"] >= run["duration_s"] / 2]
        begins = settled["begins_request"]
        kinds = {"all": settled}
        if begins.any():
            kinds |= {"begins_request": settled[begins], "other": settled[~begins]}
        for kind, group in kinds.items():
            rows.append(
                {
                    "run_digest": run["run_digest"],
                    "variant": run["variant"],
                    "retention_kind": run["retention_kind"],
                    "evidence": run["evidence"],
                    "kind": kind,
                    "num_frames": len(group),
                    "answered": group["latency_s"].notna().mean(),
                    "missed": group["missed"].mean(),
                    **{name: group["latency_s"].quantile(q) for name, q in QUANTILES.items()},
                }
            )
    return pd.DataFrame(rows)
