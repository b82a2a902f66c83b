"""Pieces that several figures share: the deadline, never answered frames, silence, the legend."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from harness.figures.style import COLOURS

# The lowest latency that a log axis shows; the gateway's zero waits are drawn there.
FLOOR_S = 1e-3
# How far above the slowest answer and the deadline crosses stand of frames never answered.
_NEVER = 4


def colour_of(retention_kind: str) -> str:
    """The colour of a variant, in every figure that shows both in one panel."""
    return COLOURS["dead"] if retention_kind == "unbounded" else COLOURS["answer"]


def never_level_s(frames: pd.DataFrame, budget_s: float) -> float:
    """Where crosses stand in a figure of these frames: above its deadline and its answers."""
    return _NEVER * float(max(budget_s, frames["latency_s"].max()))


def latency_axis(axis: Axes, budget_s: float, never_s: float, *, label: str | None = None) -> None:
    """A log axis from the floor to above the crosses at `never_s`, with the deadline."""
    axis.set_yscale("log")
    axis.axhline(budget_s, color=COLOURS["budget"], ls="--", lw=1.2, label=label)
    axis.set_ylim(0.7 * FLOOR_S, 2 * never_s)


def never_answered(
    axis: Axes, frames: pd.DataFrame, never_s: float, colour: str, *, size: float = 14
) -> None:
    """A cross, at `never_s`, for every frame that was never answered."""
    never = frames[frames["latency_s"].isna()]
    axis.scatter(
        never["release_s"],
        [never_s] * len(never),
        s=size,
        marker="x",
        linewidths=0.8,
        color=colour,
        label="never answered",
    )


def shade_silence(axis: Axes, frames: pd.DataFrame) -> None:
    """Shade the time from the first silent frame to the last."""
    silent = frames[frames["silent"]]
    if silent.empty:
        return
    axis.axvspan(
        silent["release_s"].min(),
        silent["deadline_s"].max(),
        color=COLOURS["silence"],
        alpha=0.6,
        lw=0,
    )


def side_legend(axis: Axes, sources: Iterable[Axes], *, x: float = 1.18) -> None:
    """One legend, right of `axis`, for what any of the axes shows."""
    handles: dict[str, Artist] = {}
    for source in sources:
        for handle, label in zip(*source.get_legend_handles_labels(), strict=True):
            handles.setdefault(str(label), handle)
    axis.legend(
        list(handles.values()),
        list(handles),
        loc="upper left",
        bbox_to_anchor=(x, 1.0),
        fontsize=8,
    )
