"""Is latency flat? The medians of a run's first and last quarter, while every call is served.

Two latencies: *answer*, release to last token (ours), and *gateway*, what the paper's gateway would
log. A run serves until its first silent frame, or to its end.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

QUARTER = 0.25


def latency_drift(frames: pd.DataFrame) -> dict[str, Any]:
    """Early and late medians of both latencies, seconds; null if no frame was served.

    frames: of one run, as in telemetry's FRAMES. Frames that were never answered have no answer
    latency and are left out of its medians.
    Example: silence from 160 s on -> early is up to 40 s, late from 120 s to 160 s.
    """
    silent = frames.loc[frames["silent"], "release_s"]
    end_s = silent.min() if len(silent) else frames["deadline_s"].max()
    early = frames[frames["release_s"] < QUARTER * end_s]
    late = frames[frames["release_s"].between((1 - QUARTER) * end_s, end_s, inclusive="left")]
    return {
        f"{view}_{name}_s": part[column].median()
        for view, column in (("answer", "latency_s"), ("gateway", "tick_wait_s"))
        for name, part in (("early", early), ("late", late))
    }
