"""Measured steps against fitted ones, and what is left over; one column a table of steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from harness.figures.style import COLOURS, add_caption, save, use_house_style

_CAPTION = (
    "Top: duration of every step, measured and fitted; on the line they are equal. Bottom: "
    "relative error by the number of requests in the step, with the median of each load. A step "
    "that computes prompt tokens is prefill, also if others decode in it."
)
# Beyond this relative error a dot is drawn on the edge.
_EDGE = 1.0


def draw(fits: pd.DataFrame, steps: pd.DataFrame, stem: Path) -> list[Path]:
    """Draw from the tables of harness/experiments/calibrate.py; returns the files."""
    use_house_style()
    names = list(fits["table"])
    figure: Figure
    figure, axes = plt.subplots(2, len(names), figsize=(3.9 * len(names), 5.6), squeeze=False)
    for column, fit in enumerate(fits.to_dict(orient="records")):
        of_table = steps[steps["table"] == fit["table"]]
        is_prefill = of_table["num_prefill_tokens"] > 0
        for kind, colour, rows in (
            ("decode", COLOURS["answer"], of_table[~is_prefill]),
            ("prefill", COLOURS["budget"], of_table[is_prefill]),
        ):
            if len(rows):
                _fitted(axes[0, column], rows, kind, colour)
                _residuals(axes[1, column], rows, kind, colour)
        _identity(axes[0, column], of_table)
        axes[1, column].axhline(0, color="#555555", lw=1)
        axes[0, column].set_title(
            f"{fit['model']} on {fit['hardware']}\n{fit['num_steps']} steps ({fit['evidence']}); "
            f"error {fit['residual_median']:.0%}, 95 %: {fit['residual_p95']:.0%}",
            fontsize=8.5,
        )
        axes[1, column].set_xlabel("requests in the step")
        axes[0, column].set_xlabel("measured (ms)")
    axes[0, 0].set_ylabel("fitted (ms)")
    axes[1, 0].set_ylabel("(fitted - measured) / measured")
    for handle in axes[0, 0].legend(loc="upper left", fontsize=8).legend_handles:
        handle.set_alpha(1.0)
    figure.tight_layout()
    add_caption(figure, _CAPTION, fits["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _size_and_alpha(num_points: int) -> tuple[float, float]:
    return (34, 0.95) if num_points < 50 else (6, 0.3)


def _fitted(axis: Axes, rows: pd.DataFrame, kind: str, colour: str) -> None:
    size, alpha = _size_and_alpha(len(rows))
    axis.scatter(
        rows["seconds"] * 1e3,
        rows["predicted_s"] * 1e3,
        color=colour,
        lw=0,
        label=kind,
        s=size,
        alpha=alpha,
    )


def _identity(axis: Axes, rows: pd.DataFrame) -> None:
    both = pd.concat([rows["seconds"], rows["predicted_s"]]) * 1e3
    ends = np.array([both.min() * 0.8, both.max() * 1.25])
    axis.plot(ends, ends, color="#555555", lw=1, zorder=0)
    axis.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        side.set_minor_formatter(NullFormatter())
        side.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))


def _residuals(axis: Axes, rows: pd.DataFrame, kind: str, colour: str) -> None:
    shown = rows["residual"].clip(-_EDGE, _EDGE)
    size, alpha = _size_and_alpha(len(rows))
    axis.scatter(rows["num_requests"], shown, color=colour, lw=0, s=size, alpha=alpha)
    medians = rows.groupby("num_requests")["residual"].median().clip(-_EDGE, _EDGE)
    if len(medians) < len(rows):
        axis.plot(medians.index, medians, color=colour, lw=1.6, label=kind)
    limit = min(_EDGE, max(0.25, float(shown.abs().max()) * 1.1))
    low, high = axis.get_ylim()
    axis.set_ylim(min(low, -limit), max(high, limit))
