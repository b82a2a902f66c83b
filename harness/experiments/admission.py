"""Admission: more calls than can be served arrive one by one, and a controller decides.

Question: does AIMD settle at a number of calls that the engine can serve, bounded and unbounded,
and does it matter what latency it is shown?
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.analysis.admission import (
    KEYS,
    Observed,
    admission_outcomes,
    control_over_time,
    latency_over_time,
)
from harness.analysis.runs import run_summaries
from harness.analysis.tables import Tables
from harness.analysis.truthfulness import signal_quality
from harness.experiments.runner import FinishedRun
from harness.figures import admission as figure


def observed(runs: Sequence[FinishedRun]) -> list[Observed]:
    """The runs that left decisions."""
    recorded = [(run.run, run.summary, run.recording()) for run in runs]
    return [(r, s, tables) for r, s, tables in recorded if tables is not None]


def tabulate(runs: Sequence[FinishedRun]) -> Tables:
    """One row a run; sessions and cap over time; latency over time; how true each signal is."""
    seen = observed(runs)
    summaries = run_summaries([(run.summary, run.recording()) for run in runs])
    if not seen:
        return {"": summaries}
    outcomes = admission_outcomes(seen)
    new = [column for column in outcomes if column not in summaries or column == "run_digest"]
    latency = latency_over_time(seen)
    return {
        "": summaries.merge(outcomes[new], on="run_digest", how="left"),
        "control": control_over_time(seen),
        "latency": latency,
        "signals": signal_quality(latency)[[*KEYS, *_SIGNAL_COLUMNS]],
    }


_SIGNAL_COLUMNS = (
    "signal",
    "rho",
    "num_budgets",
    "first_over_target_s",
    "first_miss_s",
    "warning_s",
)


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw the artifact's figure as `<stem>.pdf` and `<stem>.png`."""
    return figure.draw(tables, stem)
