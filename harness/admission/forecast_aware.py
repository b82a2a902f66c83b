"""Refuses a call that the KV pool could not hold for as long as calls last; protects unbounded KV.

Latency says nothing of a pool that fills: it is flat until the wall. Its growth does. A session of
age a holds about g a blocks, at most its plateau p (none if unbounded); g is fitted through the
origin over what was seen at arrivals. With n sessions in and a pool of P blocks,

    t_sat = (P - g A) / (n g)      A: age of all sessions together; none if n p <= P

and a call is refused if, with it, t_sat is below the expected session length.
Source: paper Eq. 1 (t_sat); the rule is ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.admission.base import AdmissionController, Arrival, Decision, Interval, SeenLatency

# Fewer samples than this, or younger sessions, and the growth would be a guess.
MIN_SAMPLES = 8


class ForecastAware:
    """Asks another controller, and refuses what would fill the pool within a session's length.

    then: the controller that decides on everything else.
    expected_session_s: how long a call lasts.
    plateau_blocks: most blocks that a session holds; None if it grows without end.
    """

    def __init__(
        self,
        then: AdmissionController,
        *,
        expected_session_s: float,
        plateau_blocks: int | None,
    ) -> None:
        self._then = then
        self._expected_session_s = expected_session_s
        self._plateau_blocks = plateau_blocks
        self._num_samples = 0
        self._held_by_age = 0.0
        self._age_squared = 0.0

    def decide(self, arrival: Arrival) -> Decision:
        """Admit if the forecast and the other controller both do."""
        decision = self._then.decide(arrival)
        self._learn(arrival)
        saturation_s = self.saturation_s(arrival)
        is_late = saturation_s is not None and saturation_s < self._expected_session_s
        return Decision(
            admit=decision.admit and not is_late,
            reason="the pool would be full before the call ends" if is_late else decision.reason,
            session_cap=decision.session_cap,
            signal_s=decision.signal_s,
            saturation_s=saturation_s,
        )

    def observe(self, frame: SeenLatency) -> None:
        """Latency is for the other controller."""
        self._then.observe(frame)

    @property
    def intervals(self) -> Sequence[Interval]:
        """The other controller's."""
        return self._then.intervals

    @property
    def growth_blocks_per_s(self) -> float | None:
        """g, blocks a second of one session; None before enough was seen."""
        if self._num_samples < MIN_SAMPLES:
            return None
        return self._held_by_age / self._age_squared

    def saturation_s(self, arrival: Arrival) -> float | None:
        """Time until the pool is full if the call is let in; None if never, or not known yet."""
        growth, pool = self.growth_blocks_per_s, arrival.pool
        if not growth or pool is None:
            return None
        num_sessions = arrival.num_live + 1
        plateau = self._plateau_blocks
        if plateau is not None and num_sessions * plateau <= pool.total_blocks:
            return None
        free = pool.total_blocks - growth * arrival.total_age_s
        return max(0.0, free / (num_sessions * growth))

    def _learn(self, arrival: Arrival) -> None:
        """Add what the pool holds now, unless sessions are near their plateau."""
        pool, age_s = arrival.pool, arrival.total_age_s
        if pool is None or not age_s:
            return
        plateau = self._plateau_blocks
        if plateau is not None and pool.used_blocks > 0.5 * plateau * arrival.num_live:
            return
        self._num_samples += 1
        self._held_by_age += pool.used_blocks * age_s
        self._age_squared += age_s * age_s
