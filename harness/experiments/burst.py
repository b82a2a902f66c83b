"""A burst of 90 s against a call of minutes, by number of calls.

Question: does a short benchmark see the wall at all?
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.analysis.runs import run_summaries
from harness.analysis.tables import Tables
from harness.experiments.runner import FinishedRun
from harness.figures import burst as figure


def tabulate(runs: Sequence[FinishedRun]) -> Tables:
    """The artifact's table: one row a run."""
    return {"": run_summaries([(run.summary, run.recording()) for run in runs])}


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw the artifact's figure as `<stem>.pdf` and `<stem>.png`."""
    return figure.draw(tables[""], stem)
