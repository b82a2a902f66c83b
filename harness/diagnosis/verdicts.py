"""Why did it go quiet? One verdict a run, computed from what was recorded, with its cause in words.

A run is alive only if tokens flow. The rules are tried in the order of `Verdict`, the first that
holds decides; docs/verdicts.md explains each with a picture.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import pandas as pd

from harness.capacity import blocks_per_frame
from harness.config import RunConfig
from harness.diagnosis.recording import Recording
from harness.diagnosis.self_checks import failed_self_checks


class Verdict(enum.Enum):
    """What became of a run."""

    ended_early = "ended_early"
    engine_dead = "engine_dead"
    never_served = "never_served"
    invalid = "invalid"
    stalled = "stalled"
    shedding = "shedding"
    overloaded = "overloaded"
    alive = "alive"

    @property
    def is_collapse(self) -> bool:
        """Whether calls went dead while the harness itself worked."""
        return self in (Verdict.shedding, Verdict.stalled, Verdict.engine_dead)


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """A verdict and the sentence that justifies it."""

    verdict: Verdict
    cause: str


def pool_full_s(run: RunConfig, recording: Recording) -> float | None:
    """First instant at which fewer blocks were free than one more frame needs; None if never.

    A preemption proves a full pool, and frees so much at once that no sample may have seen it.
    """
    pool = recording.pool
    free = pool["total_blocks"] - pool["used_blocks"]
    full = [
        *pool.loc[free < blocks_per_frame(run), "t_s"],
        *recording.events_of("preempted")["t_s"],
    ]
    return float(min(full)) if full else None


def silent_at_the_end(frames: pd.DataFrame) -> list[int]:
    """Sessions whose last frame belongs to a silence."""
    last = frames.loc[frames.groupby("session_id")["frame"].idxmax()]
    return [int(session) for session in last.loc[last["silent"], "session_id"]]


def live_at_the_end(recording: Recording) -> set[int]:
    """Sessions that were let in and had not hung up when the run ended."""
    left = recording.events_of("session_left")["session_id"].dropna().astype(int)
    return {int(session) for session in recording.frames["session_id"].unique()} - set(left)


def diagnose(run: RunConfig, recording: Recording) -> Diagnosis:
    """The verdict of a recorded run."""
    frames, pool = recording.frames, recording.pool
    interrupted = recording.events_of("interrupted")
    if len(interrupted):
        at = float(interrupted["t_s"].iloc[0])
        return Diagnosis(verdict=Verdict.ended_early, cause=f"interrupted after {at:.1f} s")
    dead = recording.events_of("engine_dead")
    if len(dead):
        at, detail = float(dead["t_s"].iloc[0]), str(dead["detail"].iloc[0])
        return Diagnosis(verdict=Verdict.engine_dead, cause=f"at {at:.1f} s: {detail}")
    if not frames["tokens"].sum():
        return Diagnosis(verdict=Verdict.never_served, cause="no session ever received a token")
    broken = failed_self_checks(run, recording)
    if broken:
        return Diagnosis(verdict=Verdict.invalid, cause="; ".join(broken))
    ended = recording.events_of("session_end")
    if len(ended):
        cause = f"the engine ended {len(ended)} sessions, the first at {ended['t_s'].iloc[0]:.1f} s"
        return Diagnosis(verdict=Verdict.ended_early, cause=cause)

    silent = silent_at_the_end(frames)
    num_sessions = frames["session_id"].nunique()
    full_s = pool_full_s(run, recording)
    tail = pool.iloc[-1]
    last_token_s = float(frames["last_token_s"].max())
    preempted = set(recording.events_of("preempted")["session_id"].dropna().astype(int))
    live = live_at_the_end(recording)
    nobody_is_answered = bool(live) and live <= set(silent)
    if nobody_is_answered and full_s is not None and tail["running"] == 0:
        cause = (
            f"pool full at {full_s:.1f} s; since {last_token_s:.1f} s nothing runs: "
            f"{tail['waiting']:.0f} sessions wait for blocks, {tail['paused']:.0f} hold theirs, "
            f"{len(preempted)} had been preempted"
        )
        return Diagnosis(verdict=Verdict.stalled, cause=cause)
    if len(silent) and (full_s is not None or preempted):
        cause = (
            f"{len(silent)} of {num_sessions} sessions are silent for good, "
            f"{len(preempted)} were preempted"
        )
        cause += f"; pool full at {full_s:.1f} s" if full_s is not None else ""
        return Diagnosis(verdict=Verdict.shedding, cause=cause)
    misses = float(frames["missed"].mean())
    if len(silent) or misses > run.diagnosis.miss_tolerance:
        cause = f"{misses:.1%} of frames missed their deadline while tokens flowed"
        cause += (
            f"; {len(silent)} sessions went silent with the pool not full" if len(silent) else ""
        )
        return Diagnosis(verdict=Verdict.overloaded, cause=cause)
    cause = f"tokens flowed to the last frame, {misses:.1%} deadline misses"
    return Diagnosis(verdict=Verdict.alive, cause=cause)
