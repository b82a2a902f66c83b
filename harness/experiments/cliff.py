"""The silent cliff: the same calls into an unbounded and a bounded engine, side by side.

Question: does the call die in silence when the KV pool is full, and does the bound keep it alive?
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from harness.analysis.runs import pool_over_time, run_summaries, session_frames
from harness.experiments.runner import FinishedRun
from harness.figures import cliff as figure


def tabulate(runs: Sequence[FinishedRun]) -> dict[str, pd.DataFrame]:
    """The artifact's tables: one row a run; one row a frame; one row a pool sample."""
    runs_with_tables = [(run.summary, run.recording()) for run in runs]
    recorded = [(summary, tables) for summary, tables in runs_with_tables if tables is not None]
    return {
        "": run_summaries(runs_with_tables),
        "frames": session_frames(recorded),
        "pool": pool_over_time(recorded),
    }


def draw(tables: dict[str, pd.DataFrame], stem: Path) -> list[Path]:
    """Draw the artifact's figure as `<stem>.pdf` and `<stem>.png`."""
    return figure.draw(tables[""], tables["frames"], tables["pool"], stem)
