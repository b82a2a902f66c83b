"""Picking published runs out of the audit's tables (harness/audit/tables.py)."""

from __future__ import annotations

import pandas as pd

from harness.analysis.tables import Tables

# The first bin of 15 s holds the start-up.
STARTUP_S = 15.0


def published_series(tables: Tables, series: str, **chosen: object) -> pd.DataFrame:
    """Runs of one series whose columns hold the chosen values."""
    runs = tables[""]
    runs = runs[runs["series"] == series]
    for column, value in chosen.items():
        runs = runs[runs[column] == value]
    return runs


def settled_medians(tables: Tables, runs: pd.DataFrame) -> pd.Series:
    """All medians of these runs after their start-up, ms."""
    medians = tables["medians"]
    is_settled = medians["t_s"] >= STARTUP_S
    return medians[medians["run"].isin(runs["run"]) & is_settled]["median_ms"]
