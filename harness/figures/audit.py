"""The published wall matrix, one strip a run: 15 s medians in time, the paper's verdict, and ours.

Paper: Fig 4b, Fig 5, Table 1, from the authors' logs.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from harness.analysis.tables import Tables
from harness.figures.style import COLOURS, add_caption, save, use_house_style

_WORKING_MS = (1.0, 16.0)
_LIMIT_SHARE = 0.8
_LABELS = {
    "ended_early": "ended early",
    "never_served": "never served",
    "stalled": "stalled",
    "quiet_at_boundary": "quiet at max_model_len",
    "quiet": "quiet, cause unknown",
    "partly_served": "partly served",
    "overloaded": "overloaded",
    "alive": "alive",
}
_CAPTION = (
    "Each strip is one published five-minute run of Qwen3-Omni: the 15 s medians of the latency "
    "that the authors' client logged. Red: the median sits on the worker's limit of 0.8 B = 1.6 s. "
    "Blue: milliseconds; the paler, the closer to the 1 to 2 ms of a tick in which the engine does "
    "nothing. Black mark: latency steps down. Right of each strip: walled by the paper's "
    "rule or not, and the stricter reading. Client logs only: engine logs, pool occupancy and "
    "token counts of these runs are not published, so 'quiet' is inferred from latency."
)


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw from the tables of harness/audit/tables.py; returns the files."""
    use_house_style()
    runs = tables[""]
    matrix = runs[runs["series"] == "wall_matrix"].sort_values(
        ["num_sessions", "batch", "repetition"]
    )
    variants = ["unbounded", "bounded"]
    figure = plt.figure(figsize=(11.5, 5.4))
    # Both have the same rows, named once; the verdicts stand in the space right of each.
    axes = [figure.add_axes((left, 0.22, 0.29, 0.66)) for left in (0.12, 0.60)]
    scale = mpl.cm.ScalarMappable(LogNorm(*_WORKING_MS, clip=True), mpl.colormaps["YlGnBu"])
    for axis, variant in zip(axes, variants, strict=True):
        chosen = matrix[matrix["variant"] == variant]
        _strips(axis, chosen, tables["medians"], scale)
        axis.set_title(_title(variant, chosen), fontsize=8.5, loc="left")
        axis.set_xlabel("elapsed time (s)")
    axes[1].set_yticklabels([])
    bar = figure.colorbar(
        scale, cax=figure.add_axes((0.12, 0.085, 0.29, 0.025)), orientation="horizontal"
    )
    bar.set_label("median of logged latency (ms)", fontsize=8)
    bar.set_ticks([1, 2, 4, 8, 16], labels=["1", "2", "4", "8", "16 and over"])
    bar.ax.minorticks_off()
    bar.ax.tick_params(labelsize=8)
    figure.legend(
        handles=[
            Patch(color=COLOURS["dead"], label="on the 1.6 s limit"),
            Patch(facecolor="white", hatch="////", edgecolor="#bbbbbb", label="no data"),
            Line2D([], [], color="black", lw=1.4, label="latency steps down"),
        ],
        loc="center left",
        bbox_to_anchor=(0.59, 0.097),
        ncol=3,
        fontsize=8,
        handlelength=1.2,
    )
    add_caption(figure, _CAPTION, runs["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _strips(
    axis: Axes, runs: pd.DataFrame, medians: pd.DataFrame, scale: mpl.cm.ScalarMappable
) -> None:
    for place, run in enumerate(runs.to_dict(orient="records")):
        axis.barh(
            place,
            run["duration_s"],
            height=0.8,
            color="white",
            hatch="////",
            edgecolor="#bbbbbb",
            lw=0,
        )
        of_run = medians[medians["run"] == run["run"]]
        colours = scale.to_rgba(of_run["median_ms"].to_numpy())
        limit_ms = _LIMIT_SHARE * run["frame_budget_s"] * 1e3
        colours[of_run["median_ms"].to_numpy() >= limit_ms] = mpl.colors.to_rgba(COLOURS["dead"])
        axis.barh(
            np.full(len(of_run), place),
            of_run["width_s"],
            left=of_run["t_s"],
            height=0.8,
            color=colours,
            lw=0,
        )
        if pd.notna(run["step_down_s"]):
            axis.vlines(run["step_down_s"], place - 0.4, place + 0.4, color="black", lw=1.4)
        is_walled = run["paper_rule_walled"]
        _beside(axis, place, 5, "walled" if is_walled else "flat", is_bad=is_walled)
        label = _LABELS.get(run["verdict"], run["verdict"])
        _beside(axis, place, 42, label, is_bad=run["verdict"] != "alive")
    _beside(axis, -1.1, 5, "paper", is_bad=False)
    _beside(axis, -1.1, 42, "stricter reading", is_bad=False)
    labels = [
        f"N = {run.num_sessions}, batch {run.batch:.0f}, run {run.repetition:.0f}"
        for run in runs.itertuples()
    ]
    axis.set_yticks(range(len(runs)), labels, fontsize=7)
    axis.set_ylim(len(runs) - 0.4, -0.6)
    axis.set_xlim(0, runs["duration_s"].max() if len(runs) else 1)


def _beside(axis: Axes, place: float, points: float, text: str, *, is_bad: bool) -> None:
    """Text right of a strip, `points` from the axis."""
    axis.annotate(
        text,
        xy=(1.0, place),
        xycoords=axis.get_yaxis_transform(),
        xytext=(points, 0),
        textcoords="offset points",
        va="center",
        fontsize=7,
        fontweight="bold" if place < 0 else "normal",
        color=COLOURS["dead"] if is_bad else "black",
        annotation_clip=False,
    )


def _title(variant: str, runs: pd.DataFrame) -> str:
    counts = runs["verdict"].value_counts()
    ours = ", ".join(f"{n} {_LABELS.get(str(kind), kind)}" for kind, n in counts.items())
    walled = int(runs["paper_rule_walled"].sum())
    return f"{variant}: {walled}/{len(runs)} walled by the paper's rule\nstricter: {ours}\n"
