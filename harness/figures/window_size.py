"""Latency by the age of the calls, one line a window; and by window. Paper: Fig 11."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt

from harness.figures.style import COLOURS, add_caption, save, use_house_style

_CAPTION = (
    "Left: 90th percentile of frame latency by the age of the calls. A window is full, and its "
    "line flat, from where the session outgrows it. Right: once every window is full, the median "
    "and the 90th percentile of the later half of the run."
)


def draw(by_age: pd.DataFrame, late: pd.DataFrame, stem: Path) -> list[Path]:
    """Draw from the tables of harness/experiments/window_size.py; returns the files."""
    use_house_style()
    order = late.sort_values("window_tokens", na_position="last").reset_index(drop=True)
    shades = sns.color_palette("viridis", n_colors=int(order["window_tokens"].notna().sum()))
    colours = [*shades, "#333333"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.3), sharey=True)
    for row, colour in zip(order.to_dict(orient="records"), colours, strict=False):
        line = by_age[by_age["variant"] == row["variant"]].sort_values("age_s")
        left.plot(line["age_s"], line["p90_s"] * 1e3, color=colour, lw=1.7, label=row["variant"])
    left.set_xlabel("age of the calls (s)")
    left.set_ylabel("frame latency (ms)")
    left.legend(fontsize=8)
    for column, marker, label in (("p50_s", "o", "median"), ("p90_s", "^", "90th percentile")):
        right.plot(
            order.index, order[column] * 1e3, marker, color=COLOURS["answer"], label=label, ms=5
        )
    names = ["unbounded" if pd.isna(w) else f"{w:.0f}" for w in order["window_tokens"]]
    right.set_xticks(order.index, names)
    right.set_xlabel("window W (tokens)")
    right.set_ylim(bottom=0)
    right.legend(fontsize=8)
    figure.tight_layout()
    add_caption(figure, _CAPTION, late["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths
