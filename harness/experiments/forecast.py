"""The forecast of a full pool, and the four instants that follow.

Question: how early does a line through occupancy foresee a full pool, how sure is it, and when do
pool full, first preemption, first silence and last token really come? Any experiment's runs will
do: `experiment=cliff report=forecast artifact=forecast_live`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from harness.analysis.forecast import COLUMNS, forecast_table
from harness.analysis.runs import last_tokens, pool_over_time, run_summaries
from harness.analysis.tables import Tables
from harness.experiments.runner import FinishedRun, recorded_runs
from harness.figures import forecast as figure


def tabulate(runs: Sequence[FinishedRun]) -> Tables:
    """The artifact's tables: one row a run; a pool sample; a forecast; a session."""
    recorded = recorded_runs(runs)
    summarised = [(run.summary, recording) for run, recording in recorded]
    return {
        "": run_summaries([(run.summary, run.recording()) for run in runs]),
        "pool": pool_over_time(summarised),
        "forecast": forecasts(runs),
        "sessions": last_tokens(summarised),
    }


def forecasts(runs: Sequence[FinishedRun]) -> pd.DataFrame:
    """Every forecast of every run whose pool can fill."""
    tables = [forecast_table(run.run, recording) for run, recording in recorded_runs(runs)]
    filled = [table for table in tables if len(table)]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=list(COLUMNS))


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw the artifact's figure as `<stem>.pdf` and `<stem>.png`."""
    return figure.draw(tables, stem)
