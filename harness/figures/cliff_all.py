"""One panel a model: latency of every frame above the KV pool, both variants in one plot.

Paper: Fig 9 and 5.5, "the wall travels with the serving path".
"""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from harness.figures.panels import FLOOR_S, colour_of, never_answered, never_level_s, shade_silence
from harness.figures.style import COLOURS, add_caption, save, use_house_style

_CAPTION = (
    "Each panel: one model, the same calls unbounded and bounded. Top: release to last token of "
    "every frame; crosses were never answered; dashed: the deadline; dotted: ingest, the part of a "
    "latency before the engine's own steps (median of the bounded run). Bottom: KV pool occupancy. "
    "Shaded: sessions of the unbounded variant are silent."
)


def draw(runs: pd.DataFrame, frames: pd.DataFrame, pool: pd.DataFrame, stem: Path) -> list[Path]:
    """Draw from the tables of harness/experiments/cliff.py; returns the files."""
    use_house_style()
    shown = runs[runs["run_digest"].isin(frames["run_digest"].unique())]
    models = list(dict.fromkeys(shown["model"]))
    figure, axes = plt.subplots(
        2, len(models), figsize=(3.4 * len(models), 5.2), sharex="col", sharey="row", squeeze=False
    )
    for column, model in enumerate(models):
        top, bottom = axes[:, column]
        variants = shown[shown["model"] == model].to_dict(orient="records")
        for run in variants:
            _variant(
                top,
                bottom,
                run,
                frames[frames["run_digest"] == run["run_digest"]],
                pool[pool["run_digest"] == run["run_digest"]],
            )
        _ingest(top, variants[-1])
        verdicts = "\n".join(f"{run['variant']}: {run['verdict']}" for run in variants)
        top.set_title(f"{model}\n{verdicts}", fontsize=8.5)
        bottom.set_xlabel("elapsed time (s)")
    # One axis for all, up to the crosses of the longest frame budget.
    highest_s = never_level_s(frames, shown["frame_budget_s"].max())
    axes[0, 0].set_ylim(FLOOR_S, 2 * highest_s)
    axes[0, 0].set_ylabel("frame latency (s)")
    axes[1, 0].set_ylabel("KV pool occupancy")
    handles, labels = axes[1, 0].get_legend_handles_labels()
    axes[1, -1].legend(handles, labels, loc="upper left", bbox_to_anchor=(1.02, 1.0), fontsize=8)
    figure.tight_layout()
    add_caption(figure, _CAPTION, shown["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _ingest(axis: Axes, run: dict[Hashable, Any]) -> None:
    """How much of a latency is spent before the engine: it can be the true bottleneck."""
    if pd.isna(run["ingest_p50_s"]):
        return
    axis.axhline(run["ingest_p50_s"], color="black", ls=":", lw=1.0)
    axis.annotate(
        f"ingest {run['ingest_p50_s'] * 1e3:.1f} ms",
        (0.98, run["ingest_p50_s"]),
        xycoords=("axes fraction", "data"),
        xytext=(0, -2),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=7,
    )


def _variant(
    top: Axes,
    bottom: Axes,
    run: dict[Hashable, Any],
    frames: pd.DataFrame,
    samples: pd.DataFrame,
) -> None:
    is_unbounded = run["retention_kind"] == "unbounded"
    colour = colour_of(run["retention_kind"])
    budget_s = run["frame_budget_s"]
    answered = frames.dropna(subset="latency_s")
    top.set_yscale("log")
    top.scatter(answered["release_s"], answered["latency_s"], s=3, color=colour, alpha=0.5)
    never_answered(top, frames, never_level_s(frames, budget_s), colour, size=6)
    top.axhline(budget_s, color=COLOURS["budget"], ls="--", lw=1.0)
    bottom.plot(
        samples["t_s"],
        samples["occupancy"],
        color=colour,
        lw=1.6,
        label="unbounded" if is_unbounded else "bounded",
    )
    bottom.set_ylim(0, 1.05)
    if is_unbounded:
        shade_silence(top, frames)
        shade_silence(bottom, frames)
