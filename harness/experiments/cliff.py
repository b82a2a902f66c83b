"""The silent cliff: the same calls into an unbounded and a bounded engine, side by side.

Question: does the call die in silence when the KV pool is full, and does the bound keep it alive?
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.analysis.runs import (
    pool_over_time,
    retention_label,
    run_summaries,
    session_frames,
)
from harness.analysis.tables import Tables
from harness.experiments.forecast import forecasts
from harness.experiments.runner import FinishedRun
from harness.figures import cliff as figure


def tabulate(runs: Sequence[FinishedRun]) -> Tables:
    """The artifact's tables: one row a run; a frame; a pool sample; a forecast."""
    runs_with_tables = [(run.summary, run.recording()) for run in runs]
    recorded = [(summary, tables) for summary, tables in runs_with_tables if tables is not None]
    tables = {
        "": run_summaries(runs_with_tables),
        "frames": session_frames(recorded),
        "pool": pool_over_time(recorded),
    }
    return {**name_variants(tables, runs), "forecast": forecasts(runs)}


def name_variants(tables: Tables, runs: Sequence[FinishedRun]) -> Tables:
    """The tables with each run's variant as configured: verdict.json tells no window from a model's
    own context.
    """
    labels = {run.summary["run_digest"]: retention_label(run.run.retention) for run in runs}
    return {
        part: table.assign(variant=table["run_digest"].map(labels))
        for part, table in tables.items()
    }


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw the artifact's figure as `<stem>.pdf` and `<stem>.png`."""
    return figure.draw(tables[""], tables["frames"], tables["pool"], stem)
