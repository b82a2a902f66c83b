"""How many Moshi calls fit: no bound, the model's own context, the window with sinks.

Question: Moshi comes with a context of 3,000 frames. Is that bound enough?
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from harness.analysis.runs import pool_over_time, run_summaries
from harness.analysis.tables import Tables
from harness.capacity import planned_pool_blocks, session_plateau_blocks
from harness.experiments.cliff import name_variants
from harness.experiments.runner import FinishedRun
from harness.figures import moshi_capacity as figure


def tabulate(runs: Sequence[FinishedRun]) -> Tables:
    """One row a run, with the arithmetic of its cache beside it; one row a pool sample."""
    recordings = [(run.summary, run.recording()) for run in runs]
    recorded = [(summary, tables) for summary, tables in recordings if tables is not None]
    holdings = pd.DataFrame([_holding(run) for run in runs])
    return name_variants(
        {
            "": run_summaries(recordings).join(holdings),
            "pool": pool_over_time(recorded),
        },
        runs,
    )


def _holding(run: FinishedRun) -> dict[str, float | int | None]:
    """By arithmetic: blocks and bytes that a call holds in the end, and calls that fit."""
    blocks, pool = session_plateau_blocks(run.run), planned_pool_blocks(run.run)
    size_bytes = run.run.model.kv.pool_bytes(blocks, run.run.engine.block_size_tokens)
    return {
        "call_blocks": blocks,
        "call_bytes": size_bytes,
        "pool_blocks": pool,
        "calls_that_fit": None if pool is None else pool // blocks,
    }


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw the artifact's figure as `<stem>.pdf` and `<stem>.png`."""
    return figure.draw(tables[""], tables["pool"], stem)
