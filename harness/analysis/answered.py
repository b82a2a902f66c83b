"""What callers get over time: the share of frames that were answered by their deadline."""

from __future__ import annotations

import numpy as np
import pandas as pd


def answered_shares(frames: pd.DataFrame, frame_budget_s: float) -> pd.DataFrame:
    """One row a frame budget: `release_s`, its start, and `answered`, the share in 0..1.

    frames: of one run, as in telemetry's FRAMES schema. A frame counts where it was released.
    """
    period = np.floor(frames["release_s"] / frame_budget_s + 1e-9)
    answered = (~frames["missed"]).groupby(period * frame_budget_s).mean()
    return answered.rename_axis("release_s").rename("answered").reset_index()
