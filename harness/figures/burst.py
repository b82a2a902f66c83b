"""Short benchmarks and long calls by number of calls: latency in both views, and misses.

Paper: Fig 4a.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from harness.figures.panels import FLOOR_S, colour_of, side_legend
from harness.figures.style import COLOURS, add_caption, save, use_house_style

_CAPTION = (
    "A column a duration, a point a fresh run. Top: median latency over the last quarter in which "
    "every call was served; solid: release to last token; dashed: what the paper's gateway would "
    "log (below 1 ms: drawn at 1 ms). Bottom: frames not complete at their deadline; dashed: "
    "misses that the gateway counts. Crosses: calls had gone silent for good."
)
# verdict.json's and the summary's columns: view -> (latency, misses), line style
_VIEWS = (
    ("answer_late_s", "deadline_miss_share", "-", "release to last token"),
    ("gateway_late_s", "tick_view_miss_share", "--", "gateway's view"),
)


def draw(runs: pd.DataFrame, stem: Path) -> list[Path]:
    """Draw from the table of harness/experiments/burst.py; returns the files."""
    use_house_style()
    durations = sorted(runs["duration_s"].unique())
    figure, axes = plt.subplots(
        2,
        len(durations),
        figsize=(4.0 * len(durations) + 1, 4.8),
        sharex=True,
        sharey="row",
        squeeze=False,
    )
    budget_s = runs["frame_budget_s"].iloc[0]
    for column, duration_s in enumerate(durations):
        top, bottom = axes[:, column]
        for kind, group in runs[runs["duration_s"] == duration_s].groupby(
            "retention_kind", sort=False
        ):
            _variant(top, bottom, str(kind), group.sort_values("num_sessions"))
        top.set_yscale("log")
        top.axhline(budget_s, color=COLOURS["budget"], ls="--", lw=1.2, label="deadline")
        top.set_ylim(0.7 * FLOOR_S, 3 * budget_s)
        top.set_title(f"{duration_s:g} s", fontweight="bold")
        bottom.set_ylim(-0.03, 1.0)
        bottom.set_xlabel("number of calls, N")
        bottom.set_xticks(sorted(runs["num_sessions"].unique()))
    axes[0, 0].set_ylabel("median latency (s)")
    axes[1, 0].set_ylabel("share of frames missed")
    side_legend(axes[0, -1], reversed(axes[0]), x=1.02)
    figure.suptitle(f"{runs['model'].iloc[0]}, B = {budget_s:g} s", y=0.99)
    figure.tight_layout()
    add_caption(figure, _CAPTION, runs["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _variant(top: Axes, bottom: Axes, kind: str, runs: pd.DataFrame) -> None:
    colour = colour_of(kind)
    name = "unbounded" if kind == "unbounded" else "bounded"
    for latency, misses, style, view in _VIEWS:
        label = f"{name}, {view}"
        marker, width = ("o", 3.0) if kind == "unbounded" else ("s", 1.2)
        shown: dict[str, Any] = {
            "color": colour,
            "ls": style,
            "lw": width,
            "marker": marker,
            "ms": 4,
            "label": label,
        }
        top.plot(runs["num_sessions"], runs[latency].clip(lower=FLOOR_S), **shown)
        bottom.plot(runs["num_sessions"], runs[misses], **shown)
    dead = runs[runs["verdict"].isin(("shedding", "stalled", "engine_dead"))]
    for axis, column in ((top, "answer_late_s"), (bottom, "deadline_miss_share")):
        axis.scatter(
            dead["num_sessions"],
            dead[column],
            marker="x",
            s=70,
            linewidths=2,
            color="black",
            zorder=4,
            label="calls silent for good",
        )
