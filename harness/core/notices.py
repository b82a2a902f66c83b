"""What an engine has to tell about a run beyond tokens."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something an engine did to a session.

    instant_s: on the run's clock.
    kind: preempted | rotated | recycled | ended; as in the events table.
    detail: what a person needs to know.
    """

    instant_s: float
    kind: str
    session_id: int
    detail: str
