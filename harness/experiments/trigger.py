"""What the pool and the scheduler do when the wall comes.

Question: does occupancy climb linearly to 1, and does then nothing run any more?
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.analysis.runs import pool_over_time, run_summaries
from harness.analysis.tables import Tables
from harness.experiments.runner import FinishedRun, recorded_runs
from harness.figures import trigger as figure


def tabulate(runs: Sequence[FinishedRun]) -> Tables:
    """The artifact's tables: one row a run; one row a pool sample."""
    recorded = [(run.summary, recording) for run, recording in recorded_runs(runs)]
    summaries = run_summaries([(run.summary, run.recording()) for run in runs])
    return {"": summaries, "pool": pool_over_time(recorded)}


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw the artifact's figure as `<stem>.pdf` and `<stem>.png`."""
    return figure.draw(tables[""], tables["pool"], stem)
