"""Tables across runs: one row a run, frame or pool sample, with the run's identity beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from harness.analysis.drift import latency_drift
from harness.diagnosis.recording import Recording
from harness.kv.retention import Retention, RetentionKind

Recorded = tuple[dict[str, Any], Recording]

FRAME_COLUMNS = (
    "session_id",
    "frame",
    "release_s",
    "deadline_s",
    "latency_s",
    "tick_wait_s",
    "missed",
    "empty",
    "silent",
)
POOL_COLUMNS = ("t_s", "occupancy", "running", "waiting", "paused", "preempted", "preemptions")


def retention_label(retention: Retention) -> str:
    """What a session keeps, in words. Example: `unbounded`, `bounded (W=128, S=32)`."""
    if not retention.is_bounded:
        return "unbounded"
    if retention.is_recycled:
        return f"recycled (W={retention.window_tokens})"
    if retention.native:
        return f"native context (W={retention.window_tokens})"
    sinks = f", S={retention.sink_tokens}" if retention.sink_tokens else ""
    return f"bounded (W={retention.window_tokens}{sinks})"


def variant(summary: dict[str, Any]) -> str:
    """The label of a run, from its verdict.json."""
    kept = summary["retention"]
    is_recycled = kept.get("kind") == RetentionKind.recycle.name
    return retention_label(
        Retention(
            window_tokens=kept["window_tokens"],
            sink_tokens=kept["sink_tokens"],
            kept_share=0.0 if is_recycled else None,
        )
    )


def run_summaries(runs: Sequence[tuple[dict[str, Any], Recording | None]]) -> pd.DataFrame:
    """One row a run: verdict.json with its retention flattened, its label, frame counts and drift.

    frames_offered, frames_answered, frames_empty, ingest_p50_s, ingest_p99_s: null for a run
    without a recording; so are the early and late latencies (harness/analysis/drift.py). Ingest is
    the part of a latency before the engine's own steps.
    """
    rows = []
    for summary, recording in runs:
        retention = {f"retention_{key}": value for key, value in summary["retention"].items()}
        flat = {key: value for key, value in summary.items() if key != "retention"}
        frames = None if recording is None else recording.frames
        counts = {
            "frames_offered": None if frames is None else len(frames),
            "frames_answered": None if frames is None else int(frames["latency_s"].notna().sum()),
            "frames_empty": None if frames is None else int(frames["empty"].sum()),
            "ingest_p50_s": None if frames is None else frames["ingest_s"].quantile(0.5),
            "ingest_p99_s": None if frames is None else frames["ingest_s"].quantile(0.99),
        }
        drift = {} if frames is None else latency_drift(frames)
        rows.append({"variant": variant(summary), **retention, **flat, **counts, **drift})
    return pd.DataFrame(rows)


def session_frames(recorded: Sequence[Recorded]) -> pd.DataFrame:
    """Every frame of every run, with the run's variant and digest."""
    return _stacked([(summary, recording.frames) for summary, recording in recorded], FRAME_COLUMNS)


def pool_over_time(recorded: Sequence[Recorded]) -> pd.DataFrame:
    """Every pool sample of every run, with the run's variant and digest."""
    return _stacked([(summary, recording.pool) for summary, recording in recorded], POOL_COLUMNS)


def last_tokens(recorded: Sequence[Recorded]) -> pd.DataFrame:
    """One row a session of every run: the instant of its last token, null if it never had one."""
    tables = [
        recording.frames.groupby("session_id", as_index=False)["last_token_s"]
        .max()
        .assign(variant=variant(summary), run_digest=summary["run_digest"])
        for summary, recording in recorded
    ]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _stacked(
    parts: Sequence[tuple[dict[str, Any], pd.DataFrame]], columns: Sequence[str]
) -> pd.DataFrame:
    tables = [
        table[list(columns)].assign(variant=variant(summary), run_digest=summary["run_digest"])
        for summary, table in parts
    ]
    if not tables:
        return pd.DataFrame(columns=[*columns, "variant", "run_digest"])
    return pd.concat(tables, ignore_index=True)
