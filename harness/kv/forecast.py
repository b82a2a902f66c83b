"""When will the pool be full? rho(t) = rho0 + rate t, fitted on the beginning of a trace.

Source: paper Eq. 1: rho(t) = rho0 + N r t, t_sat = (1 - rho0) / (N r); the fit is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MIN_SAMPLES = 8


@dataclass(frozen=True, kw_only=True)
class OccupancyFit:
    """A line through early occupancy.

    rho0: occupancy at t = 0; rate_per_s: growth a second, of all sessions together.
    num_samples: how many samples the fit saw.
    """

    rho0: float
    rate_per_s: float
    num_samples: int

    @property
    def saturation_time_s(self) -> float | None:
        """Instant at which the line reaches 1; None if it does not rise."""
        return (1.0 - self.rho0) / self.rate_per_s if self.rate_per_s > 0 else None


def early_samples(
    t_s: npt.NDArray[np.float64],
    occupancy: npt.NDArray[np.float64],
    *,
    skip_s: float = 0.0,
    until_occupancy: float,
) -> slice:
    """The samples from `skip_s` on and before occupancy first reaches `until_occupancy`.

    skip_s: samples before this instant are left out (sessions are still arriving).
    """
    reached = np.flatnonzero(occupancy >= until_occupancy)
    end = int(reached[0]) if len(reached) else len(t_s)
    return slice(int(np.searchsorted(t_s, skip_s)), end)


def fit_occupancy(
    t_s: npt.NDArray[np.float64],
    occupancy: npt.NDArray[np.float64],
    *,
    skip_s: float = 0.0,
    until_occupancy: float,
) -> OccupancyFit | None:
    """Least-squares line through the early samples.

    None if there are fewer than MIN_SAMPLES: a forecast from less would be a guess.
    """
    early = early_samples(t_s, occupancy, skip_s=skip_s, until_occupancy=until_occupancy)
    if len(t_s[early]) < MIN_SAMPLES:
        return None
    rate, rho0 = np.polyfit(t_s[early], occupancy[early], 1)
    return OccupancyFit(rho0=float(rho0), rate_per_s=float(rate), num_samples=len(t_s[early]))
