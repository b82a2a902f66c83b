"""What a person reads in the terminal: a line as each run ends, a table at the end."""

from __future__ import annotations

from typing import Any

import pandas as pd
from rich.table import Table

from harness.analysis.runs import variant
from harness.experiments.runner import FinishedRun

_MISSING = "-"


def verdict_line(run: FinishedRun) -> str:
    """One run in one line: variant, verdict and why."""
    kept = " (already finished)" if run.was_cached else ""
    summary = run.summary
    name = f"{summary['model']} {variant(summary)}"
    return f"{name}: [bold]{summary['verdict']}[/]{kept}: {summary['cause']}"


def verdict_table(summaries: pd.DataFrame) -> Table:
    """Runs as columns of facts, from the summary table of an artifact."""
    table = Table(title="verdicts", title_justify="left", caption_justify="left")
    table.add_column("")
    for row in summaries.to_dict(orient="records"):
        table.add_column(str(row["variant"]), justify="right")
    rows = summaries.to_dict(orient="records")
    for label, render in _ROWS:
        table.add_row(label, *(render(row) for row in rows))
    classes = ", ".join(dict.fromkeys(summaries["evidence"]))
    table.caption = f"evidence: {classes}"
    return table


def _seconds(key: str) -> Any:
    return lambda row: _MISSING if pd.isna(row[key]) else f"{row[key]:.1f} s"


def _milliseconds(*keys: str) -> Any:
    return lambda row: (
        " / ".join(_MISSING if pd.isna(row[key]) else f"{row[key] * 1e3:.0f}" for key in keys)
        + " ms"
    )


def _share(*keys: str) -> Any:
    return lambda row: " / ".join(
        _MISSING if pd.isna(row[key]) else f"{row[key]:.1%}" for key in keys
    )


def _count(*keys: str) -> Any:
    return lambda row: " / ".join(
        _MISSING if pd.isna(row[key]) else f"{row[key]:.0f}" for key in keys
    )


_ROWS = (
    ("verdict", lambda row: f"[bold]{row['verdict']}[/]"),
    ("first silent second", _seconds("silence_onset_s")),
    ("frames answered / offered", _count("frames_answered", "frames_offered")),
    ("tokens delivered of expected", _share("completeness")),
    ("empty frames", _count("frames_empty")),
    (
        "deadline misses: true / gateway's view",
        _share("deadline_miss_share", "tick_view_miss_share"),
    ),
    ("latency p50 / p99 of answered frames", _milliseconds("latency_p50_s", "latency_p99_s")),
    ("peak pool occupancy", _share("peak_occupancy")),
    ("pool full: forecast", _seconds("predicted_saturation_s")),
    ("pool full: observed", _seconds("pool_full_s")),
    ("first preemption", _seconds("first_preemption_s")),
    ("last token", _seconds("last_token_s")),
)
