"""Who is let in."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from harness.core.errors import ConfigError


class AdmissionKind(enum.Enum):
    """Who decides which calls are let in; one file each in harness/admission/."""

    admit_all = "admit_all"
    fixed_cap = "fixed_cap"
    aimd = "aimd"
    forecast_aware = "forecast_aware"

    @property
    def uses_latency(self) -> bool:
        """Whether the controller is to be told of latencies."""
        return self in (AdmissionKind.aimd, AdmissionKind.forecast_aware)


class SignalKind(enum.Enum):
    """What latency a controller sees: the contract's (release to last token) or the gateway's."""

    contract = "contract"
    gateway = "gateway"


@dataclass(frozen=True, kw_only=True)
class AdmissionConfig:
    """Who is let in.

    kind: the controller. admit_all and fixed_cap look at no latency; forecast_aware is aimd that
        also refuses a call for which the KV pool would be full within expected_session_s.
    session_cap: of fixed_cap: sessions that may be in at once.
    signal: the latency that aimd sees: contract (release to last token; infinite once the deadline
        has passed) or gateway (the paper's wait for a buffered token, never above 0.8 B).
    percentile: of the latencies of an interval, 0..1.
    target_share_of_budget: an interval above this share of B is congested. The paper's 600 ms: 0.3.
    interval_frames: length of an interval, in frame budgets.
    increase_sessions: sessions that a clean interval adds to the cap.
    decrease_factor: what a congested interval multiplies the cap with, 0..1.
    cuts_from_live: cut from the sessions that are in, if they are fewer than the cap.
    floor_sessions, ceiling_sessions: bounds of the cap, which starts at the floor; null ceiling:
        engine.max_num_seqs.
    expected_session_s: of forecast_aware: how long a call lasts.
    """

    kind: AdmissionKind = AdmissionKind.admit_all
    session_cap: int | None = None
    signal: SignalKind = SignalKind.contract
    percentile: float = 0.95
    target_share_of_budget: float = 0.3
    interval_frames: float = 1.0
    increase_sessions: float = 16.0
    decrease_factor: float = 0.8
    cuts_from_live: bool = False
    floor_sessions: float = 8.0
    ceiling_sessions: float | None = None
    expected_session_s: float = 300.0

    def __post_init__(self) -> None:
        if self.kind is AdmissionKind.fixed_cap and (self.session_cap or 0) < 1:
            raise ConfigError(
                f"admission.session_cap={self.session_cap} must be at least 1 for "
                "admission.kind=fixed_cap"
            )
        for name in ("percentile", "decrease_factor"):
            if not 0 < getattr(self, name) < 1:
                raise ConfigError(
                    f"admission.{name}={getattr(self, name)} must lie between 0 and 1"
                )
        for name in (
            "target_share_of_budget",
            "interval_frames",
            "increase_sessions",
            "expected_session_s",
        ):
            if getattr(self, name) <= 0:
                raise ConfigError(f"admission.{name}={getattr(self, name)} must be above 0")
        if self.floor_sessions < 1:
            raise ConfigError(
                f"admission.floor_sessions={self.floor_sessions} must be at least 1: with nobody "
                "in there is no latency to learn from"
            )
        ceiling = self.ceiling_sessions
        if ceiling is not None and ceiling < self.floor_sessions:
            raise ConfigError(
                f"admission.ceiling_sessions={ceiling} must be at least floor_sessions="
                f"{self.floor_sessions}"
            )
