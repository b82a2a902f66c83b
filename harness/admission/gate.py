"""The gate: stands between a replay and its engine, asks the controller, and notes what it said."""

from __future__ import annotations

from collections.abc import Callable

from harness.admission.base import AdmissionController, Arrival, Decision, SeenLatency
from harness.admission.signals import Known, LatencySignal
from harness.core.pool_state import PoolState


class Gate:
    """Admission of one run.

    busy_since_s: since when somebody is in, None if nobody is.
    signal: what latency the controller sees; None if it looks at none.
    pool: the scheduler's latest state. All instants are the loop's.
    """

    def __init__(
        self,
        controller: AdmissionController,
        signal: LatencySignal | None,
        pool: Callable[[], PoolState | None],
    ) -> None:
        self.controller = controller
        self._signal = signal
        self._pool = pool
        self._live_since: dict[int, float] = {}
        self._total_since_s = 0.0
        self.busy_since_s: float | None = None

    @property
    def num_live(self) -> int:
        """Sessions that are in."""
        return len(self._live_since)

    def arrives(self, session_id: int, instant_s: float) -> tuple[Arrival, Decision]:
        """Ask for one call; it counts as in from now on if it is admitted."""
        if self._signal is not None:
            self._tell(self._signal.due(instant_s), instant_s)
        arrival = Arrival(
            session_id=session_id,
            instant_s=instant_s,
            num_live=self.num_live,
            total_age_s=self.num_live * instant_s - self._total_since_s,
            pool=self._pool(),
        )
        decision = self.controller.decide(arrival)
        if decision.admit:
            if self.busy_since_s is None:
                self.busy_since_s = instant_s
            self._live_since[session_id] = instant_s
            self._total_since_s += instant_s
        return arrival, decision

    def released(self, session_id: int, release_s: float, expected_tokens: int) -> None:
        """A frame of an admitted session was released."""
        if self._signal is not None:
            self._tell(self._signal.due(release_s), release_s)
            self._tell(self._signal.released(session_id, release_s, expected_tokens), release_s)

    def tokens(self, session_id: int, num_tokens: int, instant_s: float) -> None:
        """Tokens of an admitted session arrived."""
        if self._signal is not None:
            self._tell(self._signal.due(instant_s), instant_s)
            self._tell(self._signal.tokens(session_id, num_tokens, instant_s), instant_s)

    def leaves(self, session_id: int) -> None:
        """An admitted session has hung up."""
        self._total_since_s -= self._live_since.pop(session_id)
        if not self._live_since:
            self.busy_since_s = None
        if self._signal is not None:
            self._signal.left(session_id)

    def _tell(self, known: list[Known], instant_s: float) -> None:
        for session_id, latency_s in known:
            self.controller.observe(
                SeenLatency(
                    session_id=session_id,
                    instant_s=instant_s,
                    latency_s=latency_s,
                    num_live=self.num_live,
                )
            )
