"""Rule for C10: fresh capacity of the four models."""

from __future__ import annotations

import pandas as pd

from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured

# "About 96": within this share.
ABOUT = 0.2


def four_models(tables: Tables) -> Judgement:
    """C10: each model's capacity is where the paper has it."""
    found = _by_model(tables["capacity"])
    paper = _by_model(tables["paper"])
    missing = [model for model in paper if model not in found]
    if missing:
        return not_measured(f"no capacity of {', '.join(missing)} is in the table")
    return from_parts(
        {
            f"{model} serves {_words(row)}": _holds(found[model], row)
            for model, row in paper.items()
        },
        ours=", ".join(
            f"{model} {_number(found[model])} ({found[model]['binds'] or 'not reached'}; "
            f"step times: {found[model]['step_evidence']})"
            for model in paper
        ),
    )


def _by_model(table: pd.DataFrame) -> dict[str, pd.Series]:
    """The first row of each model."""
    return {str(row["model"]): row for _, row in table.drop_duplicates("model").iterrows()}


def _words(row: pd.Series) -> str:
    if pd.isna(row["high"]):
        return f"at least {row['low']:.0f}"
    if row["low"] == row["high"]:
        return f"about {row['low']:.0f}"
    return f"{row['low']:.0f} to {row['high']:.0f}"


def _number(found: pd.Series) -> str:
    if pd.isna(found["failed_sessions"]):
        return f"> {found['served_sessions']:.0f}"
    low, high = found["served_sessions"], found["failed_sessions"] - 1
    return f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"


def _holds(found: pd.Series, row: pd.Series) -> bool:
    """Whether some N of our bracket lies in the paper's range."""
    if pd.isna(found["served_sessions"]):
        return False
    slack = ABOUT if row["low"] == row["high"] else 0.0
    failed = found["failed_sessions"]
    ours_low = found["served_sessions"]
    ours_high = float("inf") if pd.isna(failed) else failed - 1
    low = row["low"] * (1 - slack)
    high = float("inf") if pd.isna(row["high"]) else row["high"] * (1 + slack)
    return bool(ours_high >= low and ours_low <= high)
