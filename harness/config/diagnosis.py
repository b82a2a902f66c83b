"""Thresholds of the verdict."""

from __future__ import annotations

from dataclasses import dataclass

from harness.core.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class DiagnosisConfig:
    """Thresholds of the verdict; docs/verdicts.md says how each is used.

    silent_after_frames: empty frames in a row after which a session counts as silent.
    miss_tolerance: share of deadline misses that an alive run may have.
    max_release_lag_share: 99th percentile of release lag over B beyond which a run is invalid.
    tick_wait_share: share of B that the paper's gateway waits for a token.
    forecast_until_occupancy: occupancy up to which the forecast of a full pool sees the trace;
        where it grows evenly, the share of the time that leads to a full pool.
    """

    silent_after_frames: int = 3
    miss_tolerance: float = 0.01
    max_release_lag_share: float = 0.05
    tick_wait_share: float = 0.8
    forecast_until_occupancy: float = 0.5

    def __post_init__(self) -> None:
        if self.silent_after_frames < 1:
            raise ConfigError(
                f"diagnosis.silent_after_frames={self.silent_after_frames} must be at least 1"
            )
        for name in (
            "miss_tolerance",
            "max_release_lag_share",
            "tick_wait_share",
            "forecast_until_occupancy",
        ):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"diagnosis.{name}={getattr(self, name)} must lie in 0..1")
