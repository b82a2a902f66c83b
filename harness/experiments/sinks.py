"""What forgetting costs in language quality, and why the sinks are load-bearing.

Question: how much worse does a real model predict a text once its window has slid past the start,
without sinks and with them?
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from harness.analysis.language_quality import (
    attention_by_layer,
    late_quality,
    perplexity_by_age,
    told_texts,
)
from harness.analysis.runs import run_summaries
from harness.experiments.runner import FinishedRun
from harness.figures import sinks as figure


def tabulate(runs: Sequence[FinishedRun]) -> dict[str, pd.DataFrame]:
    """The artifact's tables: one row a run; perplexity by age; late quality; attention."""
    summaries = run_summaries([(run.summary, None) for run in runs])
    scored = [(run.summary, scores) for run in runs if (scores := run.scores()) is not None]
    if not scored:
        return {"": summaries}
    block = runs[0].run.engine.block_size_tokens
    tokens = told_texts(scored, block)
    attended = [table for run in runs if (table := run.attention()) is not None]
    return {
        "": summaries,
        "by_age": perplexity_by_age(tokens),
        "late": late_quality(tokens, block),
        "attention": attention_by_layer(attended),
    }


def draw(tables: dict[str, pd.DataFrame], stem: Path) -> list[Path]:
    """Draw the artifact's figure as `<stem>.pdf` and `<stem>.png`.

    There is none of a part of the grid in which nothing can be set beside unbounded.
    """
    if tables["late"].empty:
        return []
    return figure.draw(tables["by_age"], tables["late"], tables["attention"], stem)
