"""The wall matrix: fresh runs, unbounded and bounded, counted; and what decides their fate.

Question: 14 of 20 against 0 of 20 in the paper; what does vLLM's own scheduler do at that scale,
and is 14 of 20 what the geometry gives?
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.analysis.demand import drawn_load
from harness.analysis.odds import odds_over_time, paper_cells, spread_table
from harness.analysis.proportions import collapse_shares
from harness.analysis.runs import run_summaries
from harness.analysis.tables import Tables
from harness.config import ArrivalKind, RunConfig
from harness.diagnosis.recording import Recording
from harness.diagnosis.verdicts import silent_at_the_end
from harness.experiments.runner import FinishedRun
from harness.figures import wall_matrix as strips
from harness.figures import wall_odds


def tabulate(runs: Sequence[FinishedRun]) -> Tables:
    """One row a run; counted; the odds of a full pool; the paper's cells; the spread they take."""
    tables = counted(runs)
    unbounded = [
        (run.run, run.summary["silence_onset_s"])
        for run in runs
        if not run.run.retention.is_bounded
    ]
    if not unbounded:
        return tables
    odds = odds_over_time(unbounded)
    sigma = float(odds["sigma"].iloc[-1])
    cells = paper_cells(sigma)
    return {**tables, "odds": odds, "paper": cells, "spread": spread_table(cells, sigma)}


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw `<stem>` (every run as a strip) and `<stem>.odds` (what decides), as PDF and PNG."""
    paths = strips.draw(tables[""], tables["shares"], stem)
    if "odds" in tables:
        paths += wall_odds.draw(tables, stem.with_name(f"{stem.name}.odds"))
    return paths


def counted(runs: Sequence[FinishedRun]) -> Tables:
    """One row a run, with its offer, load, silent calls and preemptions; and the runs counted."""
    recorded = [(run, run.recording()) for run in runs]
    summaries = run_summaries([(run.summary, recording) for run, recording in recorded])
    summaries["repetition"] = [run.run.repetition for run in runs]
    summaries["offer"] = [_offer(run.run) for run in runs]
    summaries["load"] = [_decisive_load(run.run) for run in runs]
    summaries["silent_share"] = [_silent_share(recording) for _, recording in recorded]
    summaries["preemptions"] = [_preemptions(recording) for _, recording in recorded]
    # Whatever order they were run in, the table is the same; unbounded and staggered come first.
    summaries = summaries.sort_values(
        ["offer", "retention_kind", "num_sessions", "seed", "repetition"],
        ascending=[False, False, True, True, True],
        kind="stable",
        ignore_index=True,
    )
    return {"": summaries, "shares": collapse_shares(summaries)}


def _offer(run: RunConfig) -> str:
    """How the calls come in, in words, and the prefix cache if it is on."""
    arrivals = "staggered" if run.workload.arrivals is ArrivalKind.staggered else "due at once"
    return f"{arrivals}, prefix cache" if run.engine.prefix_caching else arrivals


def _decisive_load(run: RunConfig) -> float:
    """Load x (harness/analysis/demand.py) at the last frame that can still begin a silence."""
    last = run.num_frames - run.diagnosis.silent_after_frames
    return float(drawn_load(run, range(run.seed, run.seed + 1))[0, last])


def _silent_share(recording: Recording | None) -> float | None:
    if recording is None:
        return None
    num_sessions = recording.frames["session_id"].nunique()
    return len(silent_at_the_end(recording.frames)) / num_sessions


def _preemptions(recording: Recording | None) -> int | None:
    return None if recording is None else len(recording.events_of("preempted"))
