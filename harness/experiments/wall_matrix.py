"""The wall matrix: fresh five-minute runs, unbounded and bounded, counted.

Question: 14 of 20 against 0 of 20 in the paper; what does vLLM's own scheduler do at that scale?
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from harness.analysis.proportions import collapse_shares
from harness.analysis.runs import run_summaries
from harness.experiments.runner import FinishedRun
from harness.figures import wall_matrix as figure


def tabulate(runs: Sequence[FinishedRun]) -> dict[str, pd.DataFrame]:
    """The artifact's tables: one row a run; one row a variant and number of calls."""
    summaries = run_summaries([(run.summary, run.recording()) for run in runs])
    return {"": summaries, "shares": collapse_shares(summaries)}


def draw(tables: dict[str, pd.DataFrame], stem: Path) -> list[Path]:
    """Draw the artifact's figure as `<stem>.pdf` and `<stem>.png`."""
    return figure.draw(tables[""], tables["shares"], stem)
