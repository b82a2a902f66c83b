"""The cliff: latency a frame above the state of the KV pool, one column a variant.

Paper: Fig 1 (one call), Fig 5 (trigger), with what the paper's gateway would have logged beside it.
"""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from harness.figures.panels import (
    FLOOR_S,
    latency_axis,
    never_answered,
    never_level_s,
    shade_silence,
    side_legend,
)
from harness.figures.style import COLOURS, add_caption, save, title_by_offer, use_house_style

_CAPTION = (
    "Top: release to last token of every frame; crosses are frames never answered, the grey "
    "line is what the paper's gateway would log (median over the sessions). Shaded: sessions are "
    "silent. Bottom: KV pool occupancy, with requests that run and requests that wait for blocks."
)


def draw(runs: pd.DataFrame, frames: pd.DataFrame, pool: pd.DataFrame, stem: Path) -> list[Path]:
    """Draw from the cliff's tables (see harness/experiments/cliff.py); returns the files."""
    use_house_style()
    shown = runs[runs["run_digest"].isin(frames["run_digest"].unique())]
    figure, axes = plt.subplots(
        2, len(shown), figsize=(5.2 * len(shown), 5.4), sharex=True, sharey="row", squeeze=False
    )
    twins: list[Axes] = []
    for column, run in enumerate(shown.to_dict(orient="records")):
        of_run = frames[frames["run_digest"] == run["run_digest"]]
        samples = pool[pool["run_digest"] == run["run_digest"]]
        never_s = never_level_s(frames, run["frame_budget_s"])
        _latency(axes[0, column], run, of_run, never_s)
        counts = _pool(axes[1, column], run, samples)
        twins.append(counts)
        for axis in axes[:, column]:
            shade_silence(axis, of_run)
        axes[0, column].set_title(f"{run['variant']}: {run['verdict']}", fontweight="bold")
        axes[1, column].set_xlabel("elapsed time (s)")
    axes[0, 0].set_ylabel("frame latency (s)")
    axes[1, 0].set_ylabel("KV pool occupancy")
    for twin in twins[:-1]:
        twin.tick_params(labelright=False)
    twins[-1].set_ylabel("requests")
    side_legend(axes[0, -1], axes[0])
    side_legend(axes[1, -1], [*axes[1], *twins])
    title_by_offer(figure, shown.iloc[0])
    figure.tight_layout()
    add_caption(figure, _CAPTION, shown["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _latency(axis: Axes, run: dict[Hashable, Any], frames: pd.DataFrame, never_s: float) -> None:
    budget_s = run["frame_budget_s"]
    answered = frames.dropna(subset="latency_s")
    axis.scatter(
        answered["release_s"], answered["latency_s"], s=9, color=COLOURS["answer"], label="answered"
    )
    never_answered(axis, frames, never_s, COLOURS["dead"])
    waits = frames.groupby("frame").agg(t=("release_s", "median"), wait=("tick_wait_s", "median"))
    axis.step(
        waits["t"],
        waits["wait"].clip(lower=FLOOR_S),
        where="post",
        color=COLOURS["tick"],
        lw=1.6,
        label="gateway's view",
    )
    latency_axis(axis, budget_s, never_s, label=f"deadline, B = {budget_s:g} s")


def _pool(axis: Axes, run: dict[Hashable, Any], samples: pd.DataFrame) -> Axes:
    axis.plot(
        samples["t_s"], samples["occupancy"], color=COLOURS["pool"], lw=1.8, label="occupancy"
    )
    axis.set_ylim(0, 1.05)
    predicted = run["predicted_saturation_s"]
    if pd.notna(predicted):
        axis.axvline(
            predicted, color=COLOURS["budget"], ls=":", lw=1.6, label="forecast of a full pool"
        )
    counts = axis.twinx()
    for column, label in (("running", "running"), ("waiting", "waiting for blocks")):
        counts.step(
            samples["t_s"],
            samples[column],
            where="post",
            color=COLOURS[column],
            lw=1.1,
            label=label,
        )
    counts.set_ylim(0, run["num_sessions"] * 1.05)
    return counts
