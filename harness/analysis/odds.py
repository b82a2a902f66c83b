"""P(collapse) over load and time: by formula, by drawing, by runs, and the paper's counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from harness.analysis import paper_walls
from harness.analysis.demand import drawn_load, expected_load, odds_full
from harness.analysis.proportions import Proportion
from harness.config import RunConfig

NUM_DRAWS = 300
# Draws must not be the runs that they are compared with.
_FIRST_DRAW = 100_000
_SIGMA_RANGE = (1e-3, 1e3)


def odds_over_time(runs: Sequence[tuple[RunConfig, float | None]]) -> pd.DataFrame:
    """One row a number of calls and frame: load x, and the odds that the pool was full by then.

    runs: unbounded runs, with the instant at which the first call went silent; None: never.
    Columns: num_sessions, t_s, load, sigma, formula, drawn, and of the runs: n, silent, low, high.
    """
    tables = []
    for size in sorted({run.workload.num_sessions for run, _ in runs}):
        of_size = [(run, onset) for run, onset in runs if run.workload.num_sessions == size]
        run = of_size[0][0]
        law = expected_load(run)
        drawn = drawn_load(run, range(_FIRST_DRAW, _FIRST_DRAW + NUM_DRAWS)) >= 1
        onsets = np.array([np.inf if onset is None else onset for _, onset in of_size])
        silent = [Proportion(k=int((onsets <= t).sum()), n=len(onsets)) for t in law.t_s]
        tables.append(
            pd.DataFrame(
                {
                    "num_sessions": size,
                    "t_s": law.t_s,
                    "load": law.median,
                    "sigma": law.sigma,
                    "formula": law.odds_full,
                    "drawn": drawn.mean(axis=0),
                    "n": len(onsets),
                    "silent": [share.k for share in silent],
                    "low": [share.interval[0] for share in silent],
                    "high": [share.interval[1] for share in silent],
                }
            )
        )
    return pd.concat(tables, ignore_index=True)


def paper_cells(sigma: float) -> pd.DataFrame:
    """One row a number of calls: the paper's walls beside the odds of a full pool at its load.

    sigma: spread of growth between runs that the odds are for.
    Columns: num_sessions, walled, n, low, high, load_low, load, load_high, odds_full, dead_share.
    """
    rows = []
    for size, walled in paper_walls.WALLED.items():
        least, most = paper_walls.load_range(size)
        load = float(np.sqrt(least * most))
        rows.append(
            {
                "num_sessions": size,
                "walled": walled.k,
                "n": walled.n,
                "low": walled.interval[0],
                "high": walled.interval[1],
                "load_low": least,
                "load": load,
                "load_high": most,
                "odds_full": float(odds_full(load, sigma)),
                "dead_share": 1 - 1 / load,
            }
        )
    return pd.DataFrame(rows)


def spread_needed(loads: Sequence[float], share: float) -> float | None:
    """Spread of ln growth between runs at which, over these loads, this share fills its pool.

    With loads above 1 the share falls from 1 (no spread, 0) to a half (endless spread); None below.
    """
    if share >= 1:
        return 0.0

    def excess(sigma: float) -> float:
        return float(odds_full(np.asarray(loads), sigma).mean()) - share

    low, high = _SIGMA_RANGE
    if np.sign(excess(low)) == np.sign(excess(high)):
        return None
    return float(brentq(excess, low, high))


def spread_table(cells: pd.DataFrame, sigma: float) -> pd.DataFrame:
    """One row a share of the paper's: expected with our spread, and the spread that it would take.

    cells: of `paper_cells`. The interval of the spread comes from that of the share, and so runs
    the other way; null where no spread gives the share.
    """
    cases = {
        f"N = {row['num_sessions']}": ([row["load"]], Proportion(k=row["walled"], n=row["n"]))
        for row in cells.to_dict(orient="records")
    }
    cases["all"] = (cells["load"].tolist(), paper_walls.ALL_WALLED)
    rows = []
    for name, (loads, walled) in cases.items():
        low, high = walled.interval
        rows.append(
            {
                "runs": name,
                "paper_k": walled.k,
                "paper_n": walled.n,
                "expected_k": walled.n * float(odds_full(np.asarray(loads), sigma).mean()),
                "sigma": sigma,
                "sigma_needed": spread_needed(loads, walled.k / walled.n),
                "sigma_needed_low": spread_needed(loads, high),
                "sigma_needed_high": spread_needed(loads, low),
            }
        )
    return pd.DataFrame(rows)
