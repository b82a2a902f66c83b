"""The border between a replay and whatever decides who is let in: one protocol.

A controller sees arrivals and the latencies of frames, nothing else. It never sleeps and never asks
for the time: every instant comes with what it is told, on the clock of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.core.pool_state import PoolState


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A call that asks to be let in.

    instant_s: now. num_live: sessions that are in, without this one.
    total_age_s: for how long those have been in, all together.
    pool: the scheduler's latest state, None before its first.
    """

    session_id: int
    instant_s: float
    num_live: int
    total_age_s: float = 0.0
    pool: PoolState | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenLatency:
    """The latency of one frame, as the chosen signal (signals.py) sees it.

    instant_s: when it was known. latency_s: infinite if the frame was incomplete at its deadline.
    num_live: sessions that were in.
    """

    session_id: int
    instant_s: float
    latency_s: float
    num_live: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What became of an arrival, and what it was based on; None where a controller has no such
    thing.

    session_cap: sessions that may be in at once, as it stood. signal_s: latency of the last judged
    interval. saturation_s: forecast of the time until the pool is full, with this session in.
    """

    admit: bool
    reason: str
    session_cap: float | None = None
    signal_s: float | None = None
    saturation_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """One control interval, judged at its end.

    end_s: that instant. signal_s: None if no frame was seen. session_cap: as it stands afterwards.
    """

    end_s: float
    signal_s: float | None
    num_frames: int
    num_live: int
    is_congested: bool
    session_cap: float


class AdmissionController(Protocol):
    """Something that lets calls in or sheds them."""

    def decide(self, arrival: Arrival) -> Decision:
        """Admit or shed. Instants never go back."""

    def observe(self, frame: SeenLatency) -> None:
        """Take note of a frame's latency."""

    @property
    def intervals(self) -> Sequence[Interval]:
        """Every interval judged so far; empty for a controller that has none."""
