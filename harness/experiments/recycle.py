"""Who bounds a call: nobody, the engine, or the application by recycling its requests.

Question: recycling avoids the wall as well; what do the frames pay that begin a new request?
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from harness.analysis.latency_by_age import by_age
from harness.analysis.recycling import latency_by_frame_kind
from harness.analysis.runs import pool_over_time, run_summaries, session_frames
from harness.analysis.tables import Tables
from harness.experiments.runner import FinishedRun
from harness.figures import recycle as figure
from harness.kv.retention import recycling_of


def tabulate(runs: Sequence[FinishedRun]) -> Tables:
    """The artifact's tables: one row a run; latency by age; by kind of frame; a pool sample."""
    recordings = [(run.summary, run.recording()) for run in runs]
    recorded = [(summary, recording) for summary, recording in recordings if recording is not None]
    summaries = run_summaries(recordings)
    frames = _with_kind(session_frames(recorded), runs)
    return {
        "": summaries,
        "by_age": by_age(frames),
        "latency": latency_by_frame_kind(frames, summaries),
        "pool": pool_over_time(recorded),
    }


def _with_kind(frames: pd.DataFrame, runs: Sequence[FinishedRun]) -> pd.DataFrame:
    """The frames with `begins_request`: whether old frames were encoded again with this one."""
    begins = pd.Series(data=False, index=frames.index)
    for finished in runs:
        run = finished.run
        recycling = recycling_of(run.retention, run.model.kv_tokens_per_frame)
        if recycling is not None:
            own = frames["run_digest"] == finished.summary["run_digest"]
            begins[own] = frames.loc[own, "frame"].map(recycling.begins_request)
    return frames.assign(begins_request=begins.astype(bool))


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw the artifact's figure as `<stem>.pdf` and `<stem>.png`."""
    return figure.draw(tables[""], tables["by_age"], tables["latency"], tables["pool"], stem)
