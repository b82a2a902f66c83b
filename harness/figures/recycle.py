"""Unbounded, bounded by the engine, recycled by the application. Paper: Fig 10."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from harness.figures.style import COLOURS, add_caption, save, title_by_offer, use_house_style

_COLOURS = {
    "unbounded": COLOURS["dead"],
    "window": COLOURS["answer"],
    "sink_window": COLOURS["answer"],
    "recycle": COLOURS["budget"],
}
_MARKERS = {"p50_s": ("o", "median"), "p90_s": ("^", "90th"), "p99_s": ("s", "99th perc.")}
_ROWS = {"all": "", "begins_request": ": begins a request", "other": ": other frames"}
_CAPTION = (
    "Left: 99th (dashed: 50th) percentile of frame latency, release to last token, by the age of "
    "the calls, of frames that were answered. Middle: KV pool occupancy. Right: "
    "the later half of the run, and apart the frames with which a recycled request begins: they "
    "pay for what it keeps."
)


def draw(
    runs: pd.DataFrame, by_age: pd.DataFrame, latency: pd.DataFrame, pool: pd.DataFrame, stem: Path
) -> list[Path]:
    """Draw from the tables of harness/experiments/recycle.py; returns the files."""
    use_house_style()
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(11.5, 3.4), width_ratios=(1.1, 1.1, 1)
    )
    for run in runs.to_dict(orient="records"):
        colour = _COLOURS[run["retention_kind"]]
        line = by_age[by_age["variant"] == run["variant"]].sort_values("age_s")
        left.plot(line["age_s"], line["p99_s"] * 1e3, color=colour, lw=1.7, label=run["variant"])
        left.plot(line["age_s"], line["p50_s"] * 1e3, color=colour, lw=1.2, ls="--")
        own = pool[(pool["run_digest"] == run["run_digest"]) & (pool["t_s"] <= run["duration_s"])]
        middle.plot(own["t_s"], own["occupancy"], color=colour, lw=1.3)
    left.set(xlabel="age of the calls (s)", ylabel="frame latency (ms)", yscale="log")
    low, high = left.get_ylim()
    left.set_ylim(low, high * (high / low) ** 0.5)
    left.legend(fontsize=7.5, loc="upper left")
    middle.set(xlabel="elapsed time (s)", ylabel="KV pool occupancy", ylim=(0, 1.05))
    _quantiles(right, latency)
    title_by_offer(figure, runs.iloc[0])
    figure.tight_layout()
    add_caption(figure, _CAPTION, runs["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _quantiles(axis: Axes, latency: pd.DataFrame) -> None:
    """One line a variant and kind of frame, the first on top."""
    rows = latency[latency["p50_s"].notna()].iloc[::-1].reset_index(drop=True)
    for name, (marker, label) in _MARKERS.items():
        axis.scatter(
            rows[name] * 1e3,
            rows.index,
            marker=marker,
            s=26,
            label=label,
            color=[_COLOURS[kind] for kind in rows["retention_kind"]],
        )
    names = rows["variant"].str.replace(" (", "\n(", regex=False)
    labels = [f"{name}{_ROWS[kind]}" for name, kind in zip(names, rows["kind"], strict=True)]
    axis.set_yticks(rows.index, labels, fontsize=7.5)
    axis.set_ylim(-0.6, len(rows) + 0.3)
    axis.set(xlabel="frame latency (ms)", xscale="log")
    axis.legend(fontsize=7, ncol=3, loc="upper center", columnspacing=0.8, handletextpad=0.1)
