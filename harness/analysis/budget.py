"""What bounded calls hold in the end, how that grows with their number, and how many would fit.

rho(N) = rho0 + N s(W): a line through the plateaus of one window, and the number of calls at which
it reaches 1, the *memory ceiling*. Its interval is where the line's confidence band reaches 1.
Source: paper Fig 6b.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import optimize, stats

from harness.config import RunConfig
from harness.diagnosis.recording import Recording

Floats = npt.NDArray[np.float64]

COVERAGE = 0.95
# The plateau is read over the last frames of a run ...
TAIL_FRAMES = 5
# ... and is one if occupancy moves by less than this there.
SETTLED_RANGE = 0.01

PLATEAU_COLUMNS = (
    "run_digest",
    "window_tokens",
    "sink_tokens",
    "num_sessions",
    "plateau",
    "is_settled",
    "pool_tokens",
)
LINE_COLUMNS = (
    "window_tokens",
    "sink_tokens",
    "num_points",
    "rho0",
    "share_per_session",
    "share_low",
    "share_high",
    "r_squared",
    "ceiling_sessions",
    "ceiling_low",
    "ceiling_high",
    "pool_tokens",
)


def plateaus(recorded: Sequence[tuple[RunConfig, Recording]]) -> pd.DataFrame:
    """One row a bounded run."""
    rows = [_plateau(run, recording) for run, recording in recorded if run.retention.is_bounded]
    return pd.DataFrame(rows, columns=list(PLATEAU_COLUMNS))


def _plateau(run: RunConfig, recording: Recording) -> dict[str, Any]:
    """Occupancy over a run's last frames, and whether it had settled below 1."""
    pool, end_s = recording.pool, run.workload.duration_s
    from_s = end_s - TAIL_FRAMES * run.model.frame_budget_s
    tail = pool.loc[pool["t_s"].between(from_s, end_s), "occupancy"]
    has_room = recording.events_of("preempted").empty and pool["occupancy"].max() < 1
    return {
        "run_digest": run.digest,
        "window_tokens": run.retention.window_tokens,
        "sink_tokens": run.retention.sink_tokens,
        "num_sessions": run.workload.num_sessions,
        "plateau": tail.median(),
        "is_settled": bool(has_room and tail.max() - tail.min() <= SETTLED_RANGE),
        "pool_tokens": int(pool["total_blocks"].iloc[0]) * run.engine.block_size_tokens,
    }


def budget_lines(table: pd.DataFrame) -> pd.DataFrame:
    """One row a window with three settled plateaus or more.

    table: as `plateaus` makes it.

    share_per_session: s(W), with its interval; ceiling_sessions: where the line reaches 1, with
    its own; high is null if the band never does.
    """
    rows = []
    settled = table[table["is_settled"].astype(bool)]
    for (window, sinks), group in settled.groupby(["window_tokens", "sink_tokens"], sort=True):
        if group["num_sessions"].nunique() < 3:
            continue
        x, y = group["num_sessions"].to_numpy(dtype=float), group["plateau"].to_numpy(dtype=float)
        line = stats.linregress(x, y)
        quantile = stats.t.ppf((1 + COVERAGE) / 2, len(x) - 2)
        low, high = ceiling_interval(x, y)
        rows.append(
            {
                "window_tokens": window,
                "sink_tokens": sinks,
                "num_points": len(x),
                "rho0": line.intercept,
                "share_per_session": line.slope,
                "share_low": line.slope - quantile * line.stderr,
                "share_high": line.slope + quantile * line.stderr,
                "r_squared": line.rvalue**2,
                "ceiling_sessions": (1 - line.intercept) / line.slope,
                "ceiling_low": low,
                "ceiling_high": high,
                "pool_tokens": int(group["pool_tokens"].iloc[0]),
            }
        )
    return pd.DataFrame(rows, columns=list(LINE_COLUMNS))


def ceiling_interval(xs: Floats, ys: Floats) -> tuple[float | None, float | None]:
    """Where the upper and the lower edge of the regression's confidence band reach 1.

    xs: sessions. ys: plateaus, all below 1. None for an edge that does not reach 1 within a hundred
    times the most sessions.
    """
    line = stats.linregress(xs, ys)
    num = len(xs)
    spread = np.sqrt(np.sum((ys - line.intercept - line.slope * xs) ** 2) / (num - 2))
    around = np.sum((xs - xs.mean()) ** 2)
    quantile = stats.t.ppf((1 + COVERAGE) / 2, num - 2)

    def edge(sessions: float, sign: int) -> float:
        half = quantile * spread * np.sqrt(1 / num + (sessions - xs.mean()) ** 2 / around)
        return float(line.intercept + line.slope * sessions + sign * half - 1)

    def reaches(sign: int) -> float | None:
        start, stop = float(xs.mean()), 100 * float(xs.max())
        if edge(start, sign) >= 0 or edge(stop, sign) <= 0:
            return None
        return float(optimize.brentq(edge, start, stop, args=(sign,)))

    return reaches(+1), reaches(-1)
