"""Searches for N*, one a template and seed: which runs they know, and which they want next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.config import (
    AdmissionConfig,
    ArrivalKind,
    Invocation,
    RunConfig,
    SessionLengthKind,
)
from harness.experiments.bisection import bracket, next_try
from harness.experiments.runner import FinishedRun


def is_try(run: RunConfig) -> bool:
    """Whether a run is one of a search's: a closed system."""
    return not run.workload.arrivals.is_open


def is_served(run: FinishedRun) -> bool:
    """Whether the deadline misses of a run stay within what an alive run may have."""
    share = run.summary["deadline_miss_share"]
    return share is not None and share <= run.run.diagnosis.miss_tolerance


def next_tries(
    templates: Sequence[Invocation], finished: Sequence[FinishedRun]
) -> list[Invocation]:
    """What every search wants next; the first seed goes first, the others begin where it ended."""
    points: list[Invocation] = []
    for template in templates:
        search = template.search
        first = _tries_like(template, 0, finished)
        wanted = {0: next_try(first, search)}
        if wanted[0] is None:
            wanted = {
                seed: next_try(_tries_like(template, seed, finished), search, near=bracket(first))
                for seed in range(1, search.repeats)
            }
        points += [closed(template, seed, n) for seed, n in wanted.items() if n is not None]
    return points


def closed(template: Invocation, seed: int, num_sessions: int) -> Invocation:
    """One try: so many calls from the start, everybody let in, over the search's horizon."""
    workload = replace(
        template.workload,
        arrivals=ArrivalKind.staggered,
        arrival_rate_per_s=None,
        session_lengths=SessionLengthKind.endless,
        num_sessions=num_sessions,
        duration_s=template.search.horizon_s,
    )
    return replace(template, seed=seed, workload=workload, admission=AdmissionConfig())


def _tries_like(
    template: Invocation, seed: int, finished: Sequence[FinishedRun]
) -> dict[int, bool]:
    """N -> whether it was served, of the finished runs that differ from the template in N alone."""
    return {
        n: is_served(run)
        for run in finished
        if is_try(run.run)
        and (n := run.run.workload.num_sessions)
        and run.run == closed(template, seed, n).run_config
    }
