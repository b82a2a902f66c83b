"""Conversations with a real small model: what is answered once a session has forgotten its start.

Questions: does a model that never stops speaking keep answering (`experiment=free_running`), and
does one that ends its turns (`experiment=turns`)?
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from harness.analysis.conversations import answered_shares, equivalence, judged_turns
from harness.analysis.runs import run_summaries
from harness.experiments.runner import FinishedRun
from harness.figures import conversations as figure

# "Window = unbounded": shares of right answers that differ by less are held to be equal.
MARGIN = 0.1


def tabulate(runs: Sequence[FinishedRun]) -> dict[str, pd.DataFrame]:
    """The artifact's tables: one row a run; a turn; a variant; a bounded variant's equivalence."""
    summaries = run_summaries([(run.summary, None) for run in runs])
    conversed = [(run.summary, said) for run in runs if (said := run.answers()) is not None]
    if not conversed:
        return {"": summaries}
    turns = judged_turns(conversed)
    block = runs[0].run.engine.block_size_tokens
    shares = answered_shares(turns, block)
    tables = {"": summaries, "turns": turns, "shares": shares}
    if turns["window_tokens"].isna().any():
        tables["equivalence"] = equivalence(turns, block, MARGIN)
    return tables


def draw(tables: dict[str, pd.DataFrame], stem: Path) -> list[Path]:
    """Draw the artifact's figure as `<stem>.pdf` and `<stem>.png`.

    There is none of a part of the grid in which no session was older than a window.
    """
    if tables.get("shares", pd.DataFrame()).empty:
        return []
    return figure.draw(tables["shares"], stem)
