"""What a bounded call costs the pool, and how many calls memory would allow.

Question: is the plateau linear in the number of calls, and where does it reach a full pool?
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.analysis.budget import budget_lines, plateaus
from harness.analysis.runs import run_summaries
from harness.analysis.tables import Tables
from harness.experiments.runner import FinishedRun, recorded_runs
from harness.figures import budget as figure


def tabulate(runs: Sequence[FinishedRun]) -> Tables:
    """The artifact's tables: one row a run; one row a plateau; one row a window's line."""
    held = plateaus([(run.run, recording) for run, recording in recorded_runs(runs)])
    summaries = run_summaries([(run.summary, run.recording()) for run in runs])
    return {"": summaries, "plateaus": held, "lines": budget_lines(held)}


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw the artifact's figure as `<stem>.pdf` and `<stem>.png`."""
    return figure.draw(tables[""], tables["plateaus"], tables["lines"], stem)
