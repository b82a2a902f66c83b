"""What bounded calls hold: plateaus over the number of calls, and the line to a full pool.

Paper: Fig 6b.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from harness.figures.style import COLOURS, add_caption, save, use_house_style

_CAPTION = (
    "A point is the occupancy of one run of bounded calls over its last five frames; hollow: not "
    "settled, or the pool was full. Lines: least squares over the settled ones; diamond: where the "
    "line reaches a full pool, the memory ceiling, with the interval in which the line's 95 % "
    "confidence band does. Right: the share of the pool a call, by window; dotted: W + S tokens."
)
_MARKERS = "os^v*"


def draw(runs: pd.DataFrame, plateaus: pd.DataFrame, lines: pd.DataFrame, stem: Path) -> list[Path]:
    """Draw from the tables of harness/experiments/budget.py; returns the files."""
    use_house_style()
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11.0, 3.8), gridspec_kw={"width_ratios": [1.7, 1]}
    )
    windows = sorted(plateaus["window_tokens"].unique())
    shades = plt.get_cmap("viridis")(np.linspace(0.1, 0.75, len(windows)))
    for window, marker, shade in zip(windows, _MARKERS, shades, strict=False):
        points = plateaus[plateaus["window_tokens"] == window]
        for is_settled, filled in ((True, shade), (False, "none")):
            chosen = points[points["is_settled"].astype(bool) == is_settled]
            left.scatter(
                chosen["num_sessions"],
                chosen["plateau"],
                marker=marker,
                edgecolors=[shade],
                facecolors=filled if isinstance(filled, str) else [filled],
                s=32,
                zorder=3,
            )
        for row in lines[lines["window_tokens"] == window].to_dict(orient="records"):
            ceiling = row["ceiling_sessions"]
            label = f"W = {window:.0f}: {row['share_per_session']:.3%} a call, {ceiling:.0f} fit"
            left.plot([0, ceiling], [row["rho0"], 1.0], color=shade, lw=1.3, label=label)
            low, high = row["ceiling_low"], row["ceiling_high"]
            spread = None if pd.isna(low) or pd.isna(high) else [[ceiling - low], [high - ceiling]]
            left.errorbar([ceiling], [1.0], xerr=spread, fmt="D", ms=5, capsize=4, color=shade)
            share = row["share_per_session"]
            right.errorbar(
                [window],
                [100 * share],
                yerr=[[100 * (share - row["share_low"])], [100 * (row["share_high"] - share)]],
                fmt=marker,
                ms=6,
                capsize=4,
                color=shade,
            )
    left.axhline(1.0, color=COLOURS["dead"], lw=1.0, ls="--")
    left.set_ylim(0, 1.08)
    left.set_xlim(left=0)
    left.set_xlabel("number of bounded calls, N")
    left.set_ylabel("plateau of KV pool occupancy")
    if len(lines):
        left.legend(loc="lower right", fontsize=8)
        _arithmetic(right, lines)
    right.set_xlabel("window, W (tokens)")
    right.set_ylabel("share of the pool a call (%)")
    figure.suptitle(f"{runs['model'].iloc[0]}", y=0.99)
    figure.tight_layout()
    add_caption(figure, _CAPTION, runs["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _arithmetic(axis: Axes, lines: pd.DataFrame) -> None:
    kept = lines["window_tokens"] + lines["sink_tokens"]
    axis.plot(
        lines["window_tokens"], 100 * kept / lines["pool_tokens"], color="black", ls=":", lw=1.2
    )
    axis.set_xlim(0, 1.1 * lines["window_tokens"].max())
    axis.set_ylim(bottom=0)
