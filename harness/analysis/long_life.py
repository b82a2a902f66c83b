"""A run cut into slices of its age: latency, occupancy and host memory of each."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

NUM_SLICES = 20
# A slice less at the start: caches and the allocator settle.
_WARM_UP_SLICES = 1


def by_age(frames: pd.DataFrame, pool: pd.DataFrame, duration_s: float) -> pd.DataFrame:
    """Medians over the slices of a run.

    frames, pool: as in schemas.FRAMES and schemas.POOL.

    Columns: age_s, middle of the slice; first_token_p50_s and first_token_p90_s, release to first
    token, null if none came; token_gap_p50_s, between two tokens of a frame; wait_in_gaps, the
    first over the second; missed_share; occupancy; host_bytes, null if not measured.
    """
    edges = np.linspace(0.0, duration_s, NUM_SLICES + 1)
    waits = frames.assign(
        wait_s=frames["first_token_s"] - frames["release_s"],
        gap_s=(frames["last_token_s"] - frames["first_token_s"])
        / (frames["tokens"] - 1).where(frames["tokens"] > 1),
    )
    slices = waits.groupby(_slice_of(waits["release_s"], edges))
    samples = pool[(pool["t_s"] >= 0) & (pool["t_s"] < duration_s)]
    levels = samples.groupby(_slice_of(samples["t_s"], edges))
    table = pd.DataFrame({"age_s": (edges[:-1] + edges[1:]) / 2})
    table["first_token_p50_s"] = slices["wait_s"].median()
    table["first_token_p90_s"] = slices["wait_s"].quantile(0.9)
    table["token_gap_p50_s"] = slices["gap_s"].median()
    table["wait_in_gaps"] = table["first_token_p50_s"] / table["token_gap_p50_s"]
    table["missed_share"] = slices["missed"].mean()
    table["occupancy"] = levels["occupancy"].median()
    table["host_bytes"] = levels["host_bytes"].median()
    return table


def _slice_of(instants: pd.Series, edges: np.ndarray) -> np.ndarray:
    return np.searchsorted(edges, instants.to_numpy(), side="right") - 1


@dataclass(frozen=True, kw_only=True)
class Growth:
    """A factor over a whole run, 1.0 if flat, with its 95 % interval."""

    factor: float
    low: float
    high: float


def growth(ages: pd.DataFrame, column: str) -> Growth:
    """How a column grows over a run: exp of the slope of its logarithm over age, by Theil and Sen.

    The median of the slopes between any two slices after the warm-up, so that single slices, in
    which the machine did something else, decide nothing.

    ages: as from `by_age`, of one run.
    """
    ordered = ages.sort_values("age_s", ignore_index=True)
    known = ordered.iloc[_WARM_UP_SLICES:].dropna(subset=[column])
    share = (known.index + 0.5) / len(ordered)
    slope = stats.theilslopes(np.log(known[column].astype(float)), share)
    return Growth(
        factor=math.exp(slope.slope),
        low=math.exp(slope.low_slope),
        high=math.exp(slope.high_slope),
    )
