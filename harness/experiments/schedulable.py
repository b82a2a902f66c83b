"""The schedulable concurrency N*, and what AIMD takes it to be.

Question: how many calls can be served, is that what a controller settles at, and does the answer
depend on how the calls arrive, on the target or on the seed?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from harness.analysis.admission import admission_outcomes
from harness.analysis.runs import run_summaries
from harness.analysis.schedulable import controller_bias, true_concurrency
from harness.analysis.tables import Tables
from harness.config import Invocation
from harness.experiments.admission import observed
from harness.experiments.runner import FinishedRun
from harness.experiments.search import is_served, is_try, next_tries
from harness.figures import schedulable as figure
from harness.kv.retention import Retention

PAPER_RAMPS = Path(__file__).resolve().parents[2] / "results" / "paper" / "admission_ramps.csv"


def follow_up(
    invocations: Sequence[Invocation], finished: Sequence[FinishedRun]
) -> list[Invocation]:
    """The next try of every search, bounded and unbounded."""
    first = invocations[0]
    return next_tries([replace(first, retention=k) for k in (first.bound, Retention())], finished)


def tabulate(runs: Sequence[FinishedRun]) -> Tables:
    """One row a run; one a search; one a ramp and target; the authors' own ramps."""
    tries = [run for run in runs if is_try(run.run)]
    ramps = [run for run in runs if not is_try(run.run)]
    summaries = run_summaries([(run.summary, run.recording()) for run in runs])
    seen = observed(ramps)
    if not seen:
        return {"": summaries}
    outcomes = admission_outcomes(seen)
    new = [column for column in outcomes if column not in summaries or column == "run_digest"]
    merged = summaries.merge(outcomes[new], on="run_digest", how="left")
    served = {run.summary["run_digest"]: is_served(run) for run in tries}
    merged["served"] = merged["run_digest"].map(served).astype("boolean")
    truth = true_concurrency(merged)
    return {
        "": merged,
        "truth": truth,
        "bias": controller_bias(merged, truth),
        "paper": pd.read_csv(PAPER_RAMPS),
    }


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw the artifact's figure as `<stem>.pdf` and `<stem>.png`."""
    return figure.draw(tables, stem)
