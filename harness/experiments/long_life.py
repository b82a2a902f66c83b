"""A long call: what its age costs the engine, with the KV pool and the host's work bounded or not.

Question: a bounded pool keeps a call alive; does the host's work a frame stay flat as well?
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from harness.analysis.long_life import by_age
from harness.analysis.runs import run_summaries
from harness.experiments.runner import FinishedRun
from harness.figures import long_life as figure


def tabulate(runs: Sequence[FinishedRun]) -> dict[str, pd.DataFrame]:
    """The artifact's tables: one row a run; one row a run and slice of its age."""
    recorded = [(run, run.recording()) for run in runs]
    summaries = run_summaries([(run.summary, recording) for run, recording in recorded])
    ages = [
        by_age(recording.frames, recording.pool, run.run.workload.duration_s).assign(
            run_digest=run.summary["run_digest"], host_bound=run.run.engine.host_bound
        )
        for run, recording in recorded
        if recording is not None
    ]
    return {
        "": summaries.assign(host_bound=[run.run.engine.host_bound for run in runs]),
        "ages": pd.concat(ages, ignore_index=True) if ages else pd.DataFrame(),
    }


def draw(tables: dict[str, pd.DataFrame], stem: Path) -> list[Path]:
    """Draw the artifact's figure as `<stem>.pdf` and `<stem>.png`."""
    return figure.draw(tables[""], tables["ages"], stem)
