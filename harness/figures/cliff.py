"""The cliff: latency a frame above the state of the KV pool, one column a variant.

Paper: Fig 1 (one call), Fig 5 (trigger), with what the paper's gateway would have logged beside it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from harness.figures.style import COLOURS, add_caption, save, use_house_style

# The lowest latency that the log axis shows; the gateway's zero waits are drawn there.
_FLOOR_S = 1e-3
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
        _latency(axes[0, column], run, of_run)
        counts = _pool(axes[1, column], run, samples)
        twins.append(counts)
        for axis in axes[:, column]:
            _shade_silence(axis, run, of_run)
        axes[0, column].set_title(f"{run['variant']}: {run['verdict']}", fontweight="bold")
        axes[1, column].set_xlabel("elapsed time (s)")
    axes[0, 0].set_ylabel("frame latency (s)")
    axes[1, 0].set_ylabel("KV pool occupancy")
    for twin in twins[:-1]:
        twin.tick_params(labelright=False)
    twins[-1].set_ylabel("requests")
    _legend(axes[0, -1], axes[0])
    _legend(axes[1, -1], [*axes[1], *twins])
    first = shown.iloc[0]
    figure.suptitle(
        f"{first['model']}, N = {first['num_sessions']}, B = {first['frame_budget_s']:g} s", y=0.99
    )
    figure.tight_layout()
    add_caption(figure, _CAPTION, shown["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _latency(axis: Axes, run: dict[Hashable, Any], frames: pd.DataFrame) -> None:
    budget_s = run["frame_budget_s"]
    answered = frames.dropna(subset="latency_s")
    never = frames[frames["latency_s"].isna()]
    axis.set_yscale("log")
    axis.scatter(
        answered["release_s"], answered["latency_s"], s=9, color=COLOURS["answer"], label="answered"
    )
    axis.scatter(
        never["release_s"],
        [4 * budget_s] * len(never),
        s=14,
        marker="x",
        linewidths=0.8,
        color=COLOURS["dead"],
        label="never answered",
    )
    waits = frames.groupby("frame").agg(t=("release_s", "median"), wait=("tick_wait_s", "median"))
    axis.step(
        waits["t"],
        waits["wait"].clip(lower=_FLOOR_S),
        where="post",
        color=COLOURS["tick"],
        lw=1.6,
        label="gateway's view",
    )
    axis.axhline(
        budget_s, color=COLOURS["budget"], ls="--", lw=1.2, label=f"deadline, B = {budget_s:g} s"
    )
    axis.set_ylim(0.7 * _FLOOR_S, 8 * budget_s)


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


def _legend(axis: Axes, sources: Iterable[Axes]) -> None:
    """One legend, right of `axis`, for what any of the axes shows."""
    handles: dict[str, Artist] = {}
    for source in sources:
        for handle, label in zip(*source.get_legend_handles_labels(), strict=True):
            handles.setdefault(str(label), handle)
    axis.legend(
        list(handles.values()),
        list(handles),
        loc="upper left",
        bbox_to_anchor=(1.12, 1.0),
        fontsize=8,
    )


def _shade_silence(axis: Axes, run: dict[Hashable, Any], frames: pd.DataFrame) -> None:
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
