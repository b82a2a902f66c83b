"""Additive increase, multiplicative decrease of a session cap, on a percentile of frame latency.

    at the end of every interval with at least one frame, x = its latency's percentile
        x >  target     cap <- max(floor, factor base)
        x <= target     cap <- min(ceiling, cap + step)

base is the cap itself (the paper's), or, with `cuts_from_live`, the sessions that are in if those
are fewer: a cap that has run ahead of the arrivals then bites at the first cut. A session that is
in is never put out.
Constant signal: the cap goes to the ceiling in ceil((ceiling - floor) / step) clean intervals, and
to the floor in ceil(ln(floor / cap) / ln(factor)) congested ones. A signal that is congested above
K sessions: the cap swings between factor K and K + step.
Source: paper 4.2, Fig 7; interval, step, factor and percentile are not published, ours are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.admission.base import Arrival, Decision, Interval, SeenLatency


@dataclass(frozen=True, kw_only=True)
class AimdSettings:
    """What the controller is set to; see AdmissionConfig for units and bounds."""

    target_s: float
    interval_s: float
    percentile: float
    increase_sessions: float
    decrease_factor: float
    floor_sessions: float
    ceiling_sessions: float
    cuts_from_live: bool = False


class Aimd:
    """The controller; its cap starts at the floor.

    Intervals count from the first instant that it is told of, and are judged at the first event
    after their end: nothing happens in between that could ask for the cap.
    """

    def __init__(self, settings: AimdSettings) -> None:
        self.settings = settings
        self.session_cap = settings.floor_sessions
        self._latencies_s: list[float] = []
        self._end_s: float | None = None
        self._signal_s: float | None = None
        self._num_live = 0
        self._intervals: list[Interval] = []

    def decide(self, arrival: Arrival) -> Decision:
        """Admit if the session fits under the cap."""
        self._judge_until(arrival.instant_s)
        self._num_live = arrival.num_live
        admit = arrival.num_live + 1 <= self.session_cap
        return Decision(
            admit=admit,
            reason="below the session cap" if admit else "the session cap is reached",
            session_cap=self.session_cap,
            signal_s=self._signal_s,
        )

    def observe(self, frame: SeenLatency) -> None:
        """Add a frame to the running interval."""
        self._judge_until(frame.instant_s)
        self._num_live = frame.num_live
        self._latencies_s.append(frame.latency_s)

    @property
    def intervals(self) -> Sequence[Interval]:
        """Every interval with at least one frame."""
        return self._intervals

    def _judge_until(self, instant_s: float) -> None:
        if self._end_s is None:
            self._end_s = instant_s + self.settings.interval_s
        if instant_s < self._end_s:
            return
        if self._latencies_s:
            self._judge(self._end_s)
        # Intervals in which nothing was seen prove nothing, and are stepped over.
        passed = math.floor((instant_s - self._end_s) / self.settings.interval_s) + 1
        self._end_s += passed * self.settings.interval_s

    def _judge(self, end_s: float) -> None:
        chosen = self.settings
        self._signal_s = nearest_rank(self._latencies_s, chosen.percentile)
        is_congested = self._signal_s > chosen.target_s
        if is_congested:
            base = self.session_cap
            if chosen.cuts_from_live:
                base = min(base, self._num_live)
            self.session_cap = max(chosen.floor_sessions, chosen.decrease_factor * base)
        else:
            grown = self.session_cap + chosen.increase_sessions
            self.session_cap = min(chosen.ceiling_sessions, grown)
        self._intervals.append(
            Interval(
                end_s=end_s,
                signal_s=self._signal_s,
                num_frames=len(self._latencies_s),
                num_live=self._num_live,
                is_congested=is_congested,
                session_cap=self.session_cap,
            )
        )
        self._latencies_s = []


def nearest_rank(values: list[float], percentile: float) -> float:
    """The smallest value that at least a share `percentile` of the values does not exceed.

    No interpolation, since a value may be infinite. Example: 0.95 of ten values -> the largest.
    """
    return sorted(values)[max(0, math.ceil(percentile * len(values)) - 1)]
