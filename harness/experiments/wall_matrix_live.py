"""The wall matrix live, on the tiny engine near its own boundary: two ways to a mixed count.

Question: when some fresh runs collapse and others do not, what decides: the offer, or the instant?
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.analysis.tables import Tables
from harness.experiments.runner import FinishedRun
from harness.experiments.wall_matrix import counted
from harness.figures import wall_live
from harness.figures import wall_matrix as strips


def tabulate(runs: Sequence[FinishedRun]) -> Tables:
    """One row a run, and the runs counted."""
    return counted(runs)


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw `<stem>` (every run as a strip) and `<stem>.why` (what decides), as PDF and PNG."""
    paths = strips.draw(tables[""], tables["shares"], stem)
    return paths + wall_live.draw(tables[""], stem.with_name(f"{stem.name}.why"))
