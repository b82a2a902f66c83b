"""The wall matrix with one thing changed: synchronised arrivals, or vLLM's prefix cache."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.analysis.tables import Tables
from harness.experiments.runner import FinishedRun
from harness.experiments.wall_matrix import counted
from harness.figures import wall_matrix as strips


def tabulate(runs: Sequence[FinishedRun]) -> Tables:
    """One row a run, and the runs counted."""
    return counted(runs)


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw every run as a strip, as `<stem>.pdf` and `<stem>.png`."""
    return strips.draw(tables[""], tables["shares"], stem)
