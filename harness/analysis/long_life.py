"""A run cut into slices of its age: latency, occupancy and host memory of each."""

from __future__ import annotations

import numpy as np
import pandas as pd

NUM_SLICES = 20


def by_age(frames: pd.DataFrame, pool: pd.DataFrame, duration_s: float) -> pd.DataFrame:
    """Medians over the slices of a run.

    frames, pool: as in schemas.FRAMES and schemas.POOL.

    Columns: age_s, middle of the slice; first_token_p50_s and first_token_p90_s, release to first
    token, null if none came; missed_share; occupancy; host_bytes, null if not measured.
    """
    edges = np.linspace(0.0, duration_s, NUM_SLICES + 1)
    waits = frames.assign(wait_s=frames["first_token_s"] - frames["release_s"])
    slices = waits.groupby(_slice_of(waits["release_s"], edges))
    samples = pool[(pool["t_s"] >= 0) & (pool["t_s"] < duration_s)]
    levels = samples.groupby(_slice_of(samples["t_s"], edges))
    table = pd.DataFrame({"age_s": (edges[:-1] + edges[1:]) / 2})
    table["first_token_p50_s"] = slices["wait_s"].median()
    table["first_token_p90_s"] = slices["wait_s"].quantile(0.9)
    table["missed_share"] = slices["missed"].mean()
    table["occupancy"] = levels["occupancy"].median()
    table["host_bytes"] = levels["host_bytes"].median()
    return table


def _slice_of(instants: pd.Series, edges: np.ndarray) -> np.ndarray:
    return np.searchsorted(edges, instants.to_numpy(), side="right") - 1


def growth(ages: pd.DataFrame, column: str, *, warm_up: int = 1, width: int = 4) -> float:
    """Ratio of a column over the last slices to the first ones after the warm-up.

    ages: as from `by_age`, of one run. warm_up, width: slices left out, and slices compared.

    Example: 1.0 is flat, 2.0 twice as much at the end.
    """
    values = ages.sort_values("age_s")[column].astype(float)
    first = values.iloc[warm_up : warm_up + width].median()
    return float(values.iloc[-width:].median() / first)
