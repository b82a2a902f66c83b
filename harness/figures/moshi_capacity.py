"""The pool under Moshi's calls: no bound, its own context, the window; what one call holds."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from harness.figures.style import COLOURS, add_caption, save, use_house_style

# By the kind in verdict.json, where a model's own context is a window.
_COLOURS = {
    "unbounded": COLOURS["dead"],
    "window": COLOURS["budget"],
    "sink_window": COLOURS["answer"],
}
_STYLES = {"unbounded": "--", "window": "-", "sink_window": "-"}
_CAPTION = (
    "Left: KV pool occupancy by number of calls; dotted: the age at which a call outgrows the "
    "model's own context. Right, by arithmetic: the KV cache that one call holds in the end "
    "(unbounded: of this run), and how many such calls the pool takes."
)


def draw(runs: pd.DataFrame, pool: pd.DataFrame, stem: Path) -> list[Path]:
    """Draw from the tables of harness/experiments/moshi_capacity.py; returns the files."""
    use_house_style()
    sizes = sorted(runs["num_sessions"].unique())
    figure, axes = plt.subplots(1, len(sizes) + 1, figsize=(3.9 * (len(sizes) + 1), 3.1))
    for axis, size in zip(axes, sizes, strict=False):
        _occupancy(axis, runs[runs["num_sessions"] == size], pool)
        axis.set_title(f"N = {size} calls", fontsize=9)
    axes[0].set_ylabel("KV pool occupancy")
    _holdings(axes[-1], runs[runs["num_sessions"] == sizes[-1]])
    figure.tight_layout()
    add_caption(figure, _CAPTION, runs["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _occupancy(axis: Axes, runs: pd.DataFrame, pool: pd.DataFrame) -> None:
    for run in runs.to_dict(orient="records"):
        samples = pool[pool["run_digest"] == run["run_digest"]]
        axis.plot(
            samples["t_s"],
            samples["occupancy"],
            color=_COLOURS[run["retention_kind"]],
            ls=_STYLES[run["retention_kind"]],
            lw=1.8,
            # Where the own context is no help, the two lines are one: show both.
            zorder=3 if run["retention_kind"] == "unbounded" else 2,
            label=f"{run['variant']}: {run['verdict']}",
        )
        if run["retention_kind"] == "window":
            # A token a frame: Moshi's context counts frames.
            old_s = run["retention_window_tokens"] * run["frame_budget_s"]
            axis.axvline(old_s, color="black", ls=":", lw=1.0)
    axis.set_ylim(0, 1.05)
    axis.set_xlabel("elapsed time (s)")
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.1), fontsize=8)


def _holdings(axis: Axes, runs: pd.DataFrame) -> None:
    places = range(len(runs))
    axis.barh(
        places,
        runs["call_bytes"] / 1e9,
        color=[_COLOURS[kind] for kind in runs["retention_kind"]],
        height=0.6,
    )
    for place, run in zip(places, runs.to_dict(orient="records"), strict=True):
        text = f"{run['call_bytes'] / 1e9:.2f} GB, {run['calls_that_fit']:.0f} fit"
        axis.text(run["call_bytes"] / 1e9, place, f" {text}", va="center", fontsize=8)
    axis.set_yticks(places, [str(name).replace(" (", "\n(") for name in runs["variant"]])
    axis.invert_yaxis()
    axis.set_xlim(0, 1.6 * runs["call_bytes"].max() / 1e9)
    axis.set_xlabel("KV cache of one call (GB)")
    axis.spines[["top", "right"]].set_visible(False)
