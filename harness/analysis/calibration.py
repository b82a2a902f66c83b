"""Where a fitted step time is off."""

from __future__ import annotations

import pandas as pd

# A group of steps smaller than this share of all says more of noise than of the model.
_LEAST_SHARE = 0.02


def where_off(steps: pd.DataFrame) -> str:
    """In words: the load whose typical step the fit misses most.

    steps: num_requests, num_prefill_tokens and residual, one row a step.
    Example: "most at 1 request, decode: +18 %".
    """
    is_prefill = (steps["num_prefill_tokens"] > 0).rename("is_prefill")
    by_load = steps.groupby([is_prefill, "num_requests"])["residual"]
    loads = by_load.agg(["median", "size"]).reset_index()
    loads = loads[loads["size"] >= _LEAST_SHARE * len(steps)].reset_index(drop=True)
    if loads.empty:
        return "too few steps of any one load"
    worst = loads.iloc[int(loads["median"].abs().argmax())]
    kind = "prefill" if worst["is_prefill"] else "decode"
    plural = "" if worst["num_requests"] == 1 else "s"
    return f"most at {worst['num_requests']} request{plural}, {kind}: {worst['median']:+.0%}"
