"""Beyond voice: loops without audio on the same scheduler, unbounded and bounded.

Question: does any loop with a recurring deadline and an unbounded context build the same cliff, and
does the same bound cure it?
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from harness.analysis.tables import Tables
from harness.engines.sim_args import simulated_pool_blocks
from harness.experiments import cliff
from harness.experiments.runner import FinishedRun
from harness.figures import beyond_voice as figure
from harness.workload import growth


def tabulate(runs: Sequence[FinishedRun]) -> Tables:
    """The cliff's tables, with what arithmetic says of each run beforehand.

    title: the loop's name. prompt_tokens, output_tokens: what a frame brings, and its mean answer.
    expected_saturation_s: when the pool is full, by arithmetic; null if never.
    """
    tables = cliff.tabulate(runs)
    expected = pd.DataFrame([_expected(finished) for finished in runs])
    return {**tables, "": tables[""].merge(expected, on="run_digest", validate="one_to_one")}


def _expected(finished: FinishedRun) -> dict[str, Any]:
    run = finished.run
    saturation = growth.saturation(run, simulated_pool_blocks(run))
    return {
        "run_digest": finished.summary["run_digest"],
        "title": run.model.title,
        "prompt_tokens": run.model.prompt_tokens_per_frame,
        "output_tokens": growth.frame_output_tokens(run),
        "expected_saturation_s": None if saturation is None else saturation.median_s,
    }


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw the artifact's figure as `<stem>.pdf` and `<stem>.png`."""
    return figure.draw(tables[""], tables["frames"], tables["pool"], stem)
