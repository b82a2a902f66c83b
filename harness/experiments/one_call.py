"""One call for five minutes, unbounded and bounded: what its gateway logs, and what it hears.

Question: is latency flat until one step, after which the call is dead?
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.analysis.runs import run_summaries, session_frames
from harness.analysis.tables import Tables
from harness.experiments.runner import FinishedRun, recorded_runs
from harness.figures import one_call as figure


def tabulate(runs: Sequence[FinishedRun]) -> Tables:
    """The artifact's tables: one row a run; one row a frame."""
    recorded = [(run.summary, recording) for run, recording in recorded_runs(runs)]
    summaries = run_summaries([(run.summary, run.recording()) for run in runs])
    return {"": summaries, "frames": session_frames(recorded)}


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw the artifact's figure as `<stem>.pdf` and `<stem>.png`."""
    return figure.draw(tables[""], tables["frames"], stem)
