"""What a larger window costs: latency by window and by the age of the calls.

Question: how large may W be before attention over it is felt in a frame's latency?
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.analysis.latency_by_age import by_age, late
from harness.analysis.runs import run_summaries, session_frames
from harness.analysis.tables import Tables
from harness.experiments.runner import FinishedRun
from harness.figures import window_size as figure


def tabulate(runs: Sequence[FinishedRun]) -> Tables:
    """The artifact's tables: one row a run; latency by age; latency once every window is full."""
    recordings = [(run.summary, run.recording()) for run in runs]
    summaries = run_summaries(recordings)
    frames = session_frames([(s, recorded) for s, recorded in recordings if recorded is not None])
    return {"": summaries, "by_age": by_age(frames), "late": late(frames, summaries)}


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw the artifact's figure as `<stem>.pdf` and `<stem>.png`."""
    return figure.draw(tables["by_age"], tables["late"], stem)
