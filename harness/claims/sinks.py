"""Rules for what told texts decide of C7: the sinks are load-bearing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured

# Of the loss without sinks, in nats a token, what the sinks must win back.
RECOVERED_SHARE = 0.5
# "At or above unbounded": perplexity within this factor of it.
NEAR_UNBOUNDED = 1.1
# "Age-independent": change of the loss over the late tokens, nats a token.
DRIFT_NATS = 0.1


def language_quality(tables: Tables) -> Judgement:
    """C7, told texts: without sinks every window decays, with them it holds at any age."""
    late = tables.get("late")
    if late is None or late.empty:
        return not_measured("no text was scored past its window")
    live = late[late["evidence"].str.startswith("live")]
    none = live[live["kept_sink_tokens"] == 0].set_index("window_tokens")
    least = live.loc[live["kept_sink_tokens"] > 0].sort_values("kept_sink_tokens")
    some = least.drop_duplicates("window_tokens").set_index("window_tokens")
    windows = sorted(none.index.intersection(some.index))
    if not windows:
        return not_measured("no window was told both with sinks and without")
    none, some = none.loc[windows], some.loc[windows]
    recovered = 1 - _nats(some["ratio"]) / _nats(none["ratio"])
    pairs = ", ".join(
        f"W={window:.0f}: {without:.2f} / {kept:.2f}"
        for window, without, kept in zip(
            map(float, windows), none["ratio"], some["ratio"], strict=True
        )
    )
    judged = from_parts(
        {
            "without sinks every window loses quality": bool((none["ratio_low"] > 1).all()),
            f"sinks win back at least {RECOVERED_SHARE:.0%} of it": bool(
                (recovered >= RECOVERED_SHARE).all()
            ),
            f"with sinks every window is within {NEAR_UNBOUNDED - 1:.0%} of unbounded": bool(
                (some["ratio"] <= NEAR_UNBOUNDED).all()
            ),
            "with sinks the loss does not depend on age": bool(
                (some["drift_nats"].abs() <= DRIFT_NATS).all()
            ),
        },
        ours=f"late perplexity over unbounded's, without / with sinks: {pairs}",
    )
    # The reference's rows stand beside them in the tables, and decide nothing.
    return replace(judged, evidence="+".join(dict.fromkeys(live["evidence"])))


def _nats(ratios: pd.Series) -> pd.Series:
    nats: pd.Series = np.log(ratios)
    return nats
