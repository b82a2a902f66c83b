"""What a person reads in the terminal: a line as each run ends, a table at the end."""

from __future__ import annotations

from typing import Any

import pandas as pd
from rich import box
from rich.table import Table

from harness.analysis.runs import retention_label
from harness.config import RunConfig
from harness.experiments.runner import FinishedRun

_MISSING = "-"
MAX_COLUMNS = 3
MAX_ROWS = 12


def run_label(run: RunConfig) -> str:
    """What tells a run from its neighbours in a grid."""
    kept = retention_label(run.retention)
    return f"{run.model.name} {kept}, N = {run.workload.num_sessions}, seed {run.seed}"


def verdict_line(run: FinishedRun) -> str:
    """One run in one line: which, its verdict and why."""
    kept = " (already finished)" if run.was_cached else ""
    return f"{run_label(run.run)}: [bold]{run.verdict.name}[/]{kept}: {run.summary['cause']}"


def verdict_table(summaries: pd.DataFrame) -> Table:
    """The summary table of an artifact: runs as columns, as rows, or counted, whichever fits.

    It reads well in a terminal of 80 columns, with cells of two lines where there are many.
    """
    table = Table(
        title="verdicts",
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    runs = summaries.to_dict(orient="records")
    if len(runs) > MAX_ROWS:
        _count_verdicts(table, summaries)
    elif len(runs) <= MAX_COLUMNS:
        table.add_column("")
        for run in runs:
            table.add_column(str(run["variant"]).replace(" (", "\n("), justify="right")
        for label, render in _ROWS:
            table.add_row(label, *(render(run) for run in runs))
    else:
        table.add_column("model\nvariant", no_wrap=True)
        for labels, _ in _BRIEF:
            table.add_column("\n".join(labels), justify="right")
        for run in runs:
            cells = ("\n".join(render(run) for render in renders) for _, renders in _BRIEF)
            table.add_row(f"{run['model']}\n{run['variant']}", *cells)
    table.caption = f"evidence: {', '.join(dict.fromkeys(summaries['evidence']))}"
    return table


def _count_verdicts(table: Table, summaries: pd.DataFrame) -> None:
    for label in ("model\nvariant", "N"):
        table.add_column(label)
    for label in ("runs", "verdicts", "median\nmisses"):
        table.add_column(label, justify="right")
    for (model, kept, size), group in summaries.groupby(
        ["model", "variant", "num_sessions"], sort=False
    ):
        counts = ", ".join(f"{n} {name}" for name, n in group["verdict"].value_counts().items())
        median = group["deadline_miss_share"].median()
        misses = _MISSING if pd.isna(median) else f"{median:.1%}"
        table.add_row(f"{model}\n{kept}", str(size), str(len(group)), counts, misses)


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


def _verdict(row: Any) -> str:
    return f"[bold]{row['verdict']}[/]"


_ROWS = (
    ("verdict", _verdict),
    ("first silent second", _seconds("silence_onset_s")),
    ("frames answered / offered", _count("frames_answered", "frames_offered")),
    ("tokens delivered of expected", _share("completeness")),
    ("empty frames", _count("frames_empty")),
    ("misses: true / gateway's view", _share("deadline_miss_share", "tick_view_miss_share")),
    ("latency p50 / p99, answered", _milliseconds("latency_p50_s", "latency_p99_s")),
    ("of it ingest p50 / p99", _milliseconds("ingest_p50_s", "ingest_p99_s")),
    ("peak pool occupancy", _share("peak_occupancy")),
    ("pool full: forecast", _seconds("predicted_saturation_s")),
    ("pool full: observed", _seconds("pool_full_s")),
    ("first preemption", _seconds("first_preemption_s")),
    ("last token", _seconds("last_token_s")),
)

_BRIEF = (
    (("verdict", "tokens"), (_verdict, _share("completeness"))),
    (("silent at", "last word"), (_seconds("silence_onset_s"), _seconds("last_token_s"))),
    (("misses", "gateway"), (_share("deadline_miss_share"), _share("tick_view_miss_share"))),
    (("p50", "p99"), (_milliseconds("latency_p50_s"), _milliseconds("latency_p99_s"))),
    (("forecast", "full at"), (_seconds("predicted_saturation_s"), _seconds("pool_full_s"))),
)
