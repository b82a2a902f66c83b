"""A constant number of sessions: what an operator sets who knows the capacity beforehand."""

from __future__ import annotations

from collections.abc import Sequence

from harness.admission.base import Arrival, Decision, Interval, SeenLatency


class FixedCap:
    """Lets a call in while fewer than `session_cap` are."""

    def __init__(self, session_cap: int) -> None:
        self._session_cap = session_cap

    def decide(self, arrival: Arrival) -> Decision:
        """Admit below the cap."""
        admit = arrival.num_live < self._session_cap
        return Decision(
            admit=admit,
            reason="below the session cap" if admit else "the session cap is reached",
            session_cap=float(self._session_cap),
        )

    def observe(self, frame: SeenLatency) -> None:
        """Latency decides nothing here."""

    @property
    def intervals(self) -> Sequence[Interval]:
        """None."""
        return ()
