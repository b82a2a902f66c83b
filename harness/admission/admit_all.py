"""No admission control: everybody is let in. What stock vLLM does."""

from __future__ import annotations

from collections.abc import Sequence

from harness.admission.base import Arrival, Decision, Interval, SeenLatency


class AdmitAll:
    """Lets every call in."""

    def decide(self, arrival: Arrival) -> Decision:
        """Admit."""
        return Decision(admit=True, reason="everybody is admitted")

    def observe(self, frame: SeenLatency) -> None:
        """Latency decides nothing here."""

    @property
    def intervals(self) -> Sequence[Interval]:
        """None."""
        return ()
