"""Fresh capacity of each model: the most calls that are served for 90 s, and what binds it.

Question: how many calls does a fresh engine serve, and is it the deadline, the memory, the front
end or the encoder that says no?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from harness.analysis.capacity import capacities
from harness.analysis.runs import run_summaries
from harness.analysis.tables import Tables
from harness.capacity import planned_pool_blocks, session_plateau_blocks
from harness.config import Invocation, RunConfig
from harness.experiments.runner import FinishedRun
from harness.experiments.search import is_served, next_tries
from harness.figures import capacity as figure
from harness.kv.geometry import blocks_for
from harness.kv.retention import Retention

PAPER_CAPACITY = Path(__file__).resolve().parents[2] / "results" / "paper" / "capacity.csv"
# The paper's bound, for its memory ceiling.
BOUND = Retention(window_tokens=1024, sink_tokens=16)


def follow_up(
    invocations: Sequence[Invocation], finished: Sequence[FinishedRun]
) -> list[Invocation]:
    """The next try of every model's search."""
    return next_tries(invocations, finished)


def tabulate(runs: Sequence[FinishedRun]) -> Tables:
    """One row a run; one row a model and variant; the paper's numbers."""
    summaries = run_summaries([(run.summary, run.recording()) for run in runs])
    loads = pd.DataFrame([_loads(run) for run in runs])
    merged = summaries.merge(loads, on="run_digest", how="left")
    paper = pd.read_csv(PAPER_CAPACITY)
    return {"": merged, "capacity": capacities(merged), "paper": paper}


def _loads(run: FinishedRun) -> dict[str, Any]:
    """What a run asks of each part, by arithmetic, and what it missed first.

    ingest_load, encoder_load: share of time that the front end, one frame at a time, and the audio
    encoder, within the engine's steps, are busy; over 1 they fall behind.
    """
    config, recording = run.run, run.recording()
    cost = config.hardware.step_time(config.model.name)
    frames_per_s = config.workload.num_sessions / config.model.frame_budget_s
    missed = None if recording is None else recording.frames.query("missed")["deadline_s"]
    return {
        "run_digest": run.summary["run_digest"],
        "served": is_served(run),
        "first_miss_s": None if missed is None or missed.empty else missed.min(),
        "ingest_load": None if cost is None else frames_per_s * cost.ingest_frame_s,
        "encoder_load": None if cost is None else frames_per_s * cost.frame_s,
        "step_evidence": None if cost is None else cost.evidence,
        "memory_ceiling": _memory_ceiling(config),
        "bounded_ceiling": _memory_ceiling(replace(config, retention=BOUND)),
    }


def _memory_ceiling(run: RunConfig) -> int | None:
    """Sessions whose blocks at the end of the run fit the pool, by arithmetic, at mean growth."""
    blocks = planned_pool_blocks(run)
    if blocks is None:
        return None
    grown = blocks_for(run.num_frames * run.model.kv_tokens_per_frame, run.engine.block_size_tokens)
    return blocks // (
        min(grown, session_plateau_blocks(run)) if run.retention.is_bounded else grown
    )


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw the artifact's figure as `<stem>.pdf` and `<stem>.png`."""
    return figure.draw(tables, stem)
