"""How early a full pool can be foreseen, and how sure the forecast is.

The forecast is the paper's: a least-squares line rho(t) = rho0 + rate t through the beginning of a
trace, and the instant at which it reaches 1. Its interval cannot come from the residuals of that
line: occupancy is a running sum of what sessions add, so the residuals of neighbouring samples are
nearly equal, and the textbook interval would be far too narrow. Instead the *growth* between
samples is resampled in blocks (moving-block bootstrap), whole traces are rebuilt from it, and the
same forecast is made on each: its errors there, up to the instant at which a rebuilt trace is
really full, are the errors to expect here. That counts what the fit does not know of the rate, and
the luck of the answers still to come. Few blocks vary less than many would: errors are widened as
for a mean of k values, the blocks that fit into what was seen, whose spread is not known but
estimated (Student's t).

Source: paper Eq. 1 and Fig 6a for the forecast; H. R. Kuensch, The Jackknife and the Bootstrap for
General Stationary Observations (1989) for the blocks; their length, the cube root of the number of
frames seen, is P. Hall, J. Horowitz and B. Jing's order (1995).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from harness.capacity import plateau_occupancy
from harness.config import RunConfig
from harness.core.seeding import named_rng
from harness.diagnosis.recording import Recording
from harness.diagnosis.verdicts import pool_full_s
from harness.kv.forecast import OccupancyFit, early_samples, fit_occupancy

Floats = npt.NDArray[np.float64]

NUM_TRACES = 1000
COVERAGE = 0.95
# Fewer frames than this hold too few blocks to resample.
MIN_FRAMES = 4
LONGEST_TRACE = 20_000
COLUMNS = (
    "run_digest",
    "until_occupancy",
    "is_asked",
    "until_s",
    "rho0",
    "rate_per_s",
    "saturation_s",
    "low_s",
    "high_s",
    "observed_s",
    "error_share",
)
UNTIL_OCCUPANCIES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """When the pool will be full, seen from the beginning of a trace.

    fit: the line. until_s: last instant it has seen. saturation_s: where it reaches 1.
    low_s, high_s: interval of the observed instant at COVERAGE; None if too few frames were seen.
    """

    fit: OccupancyFit
    until_s: float
    saturation_s: float
    low_s: float | None
    high_s: float | None


def forecast_full_pool(
    t_s: Floats,
    occupancy: Floats,
    *,
    frame_budget_s: float,
    until_occupancy: float,
    rng: np.random.Generator,
) -> Forecast | None:
    """Forecast from the samples after the first frame and before `until_occupancy`.

    t_s, occupancy: (num_samples,), evenly spaced, oldest first.
    None if there are too few samples, or occupancy does not rise.
    """
    fit = fit_occupancy(t_s, occupancy, skip_s=frame_budget_s, until_occupancy=until_occupancy)
    if fit is None or fit.saturation_time_s is None:
        return None
    seen = early_samples(t_s, occupancy, skip_s=frame_budget_s, until_occupancy=until_occupancy)
    errors = forecast_errors(t_s[seen], occupancy[seen], frame_budget_s=frame_budget_s, rng=rng)
    low_s = high_s = None
    if errors is not None:
        tail = (1 - COVERAGE) / 2
        low_s, high_s = fit.saturation_time_s + np.quantile(errors, [tail, 1 - tail])
    return Forecast(
        fit=fit,
        until_s=float(t_s[seen][-1]),
        saturation_s=fit.saturation_time_s,
        low_s=None if low_s is None else float(low_s),
        high_s=None if high_s is None else float(high_s),
    )


def forecast_errors(
    t_s: Floats, occupancy: Floats, *, frame_budget_s: float, rng: np.random.Generator
) -> Floats | None:
    """Observed minus forecast instant, seconds, on NUM_TRACES rebuilt traces.

    t_s, occupancy: (num_samples,), what the forecast has seen. None if that is under MIN_FRAMES, or
    if it grew so little that a full pool lies beyond LONGEST_TRACE samples.
    """
    step_s = float(np.median(np.diff(t_s)))
    num_frames = (t_s[-1] - t_s[0]) / frame_budget_s
    if num_frames < MIN_FRAMES:
        return None
    growth = np.diff(occupancy)
    block = max(1, round(math.ceil(num_frames ** (1 / 3)) * frame_budget_s / step_s))
    num_seen = len(growth)
    # Half as far again as the mean growth needs.
    needed = 1.5 * (1 - occupancy[0])
    if growth.mean() * LONGEST_TRACE < needed:
        return None
    length = math.ceil(needed / growth.mean())
    starts = rng.integers(0, len(growth) - block + 1, (NUM_TRACES, -(-length // block)))
    drawn = growth[starts[..., None] + np.arange(block)].reshape(NUM_TRACES, -1)
    traces = occupancy[0] + np.cumsum(drawn, axis=1)
    instants = t_s[0] + step_s * np.arange(1, traces.shape[1] + 1)
    rate, rho0 = np.polyfit(instants[:num_seen], traces[:, :num_seen].T, 1)
    is_full = traces >= 1.0
    usable = is_full.any(axis=1) & (rate > 0)
    observed = instants[is_full.argmax(axis=1)]
    errors = observed[usable] - (1.0 - rho0[usable]) / rate[usable]
    return np.asarray(errors * _widening(num_seen / block), dtype=np.float64)


def _widening(num_blocks: float) -> float:
    """By how much an interval from so few blocks falls short. Example: 10 blocks -> 1.22."""
    upper = (1 + COVERAGE) / 2
    student = stats.t.ppf(upper, num_blocks - 1) / stats.norm.ppf(upper)
    return float(student * math.sqrt(num_blocks / (num_blocks - 1)))


def forecast_table(run: RunConfig, recording: Recording) -> pd.DataFrame:
    """One row a length of the beginning that the forecast may see; none if the pool cannot fill.

    is_asked: the row of `diagnosis.forecast_until_occupancy`, which verdict.json has, too.
    error_share: (forecast - observed) / observed; null if the pool was never full.
    """
    pool = recording.pool
    if pool.empty or plateau_occupancy(run, int(pool["total_blocks"].iloc[0])) <= 1.0:
        return pd.DataFrame(columns=list(COLUMNS))
    t_s, occupancy = pool["t_s"].to_numpy(dtype=float), pool["occupancy"].to_numpy(dtype=float)
    observed_s = pool_full_s(run, recording)
    asked = run.diagnosis.forecast_until_occupancy
    rows = []
    for until in sorted({*UNTIL_OCCUPANCIES, asked}):
        found = forecast_full_pool(
            t_s,
            occupancy,
            frame_budget_s=run.model.frame_budget_s,
            until_occupancy=until,
            rng=named_rng(run.seed, "forecast"),
        )
        if found is None:
            continue
        error = None if observed_s is None else (found.saturation_s - observed_s) / observed_s
        rows.append(
            {
                "run_digest": run.digest,
                "until_occupancy": until,
                "is_asked": until == asked,
                "until_s": found.until_s,
                "rho0": found.fit.rho0,
                "rate_per_s": found.fit.rate_per_s,
                "saturation_s": found.saturation_s,
                "low_s": found.low_s,
                "high_s": found.high_s,
                "observed_s": observed_s,
                "error_share": error,
            }
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))
