"""The cliff on all four models: it travels with the serving path, and the bound cures it."""

from __future__ import annotations

from pathlib import Path

from harness.analysis.tables import Tables
from harness.experiments.cliff import tabulate
from harness.figures import cliff_all as figure

__all__ = ["draw", "tabulate"]


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw the artifact's figure as `<stem>.pdf` and `<stem>.png`."""
    return figure.draw(tables[""], tables["frames"], tables["pool"], stem)
