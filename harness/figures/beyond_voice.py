"""Loops without audio: pool occupancy above the share of frames answered in time, one column each.

Paper: 6, argued there and not measured.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from harness.analysis.answered import answered_shares
from harness.figures.style import COLOURS, add_caption, save, use_house_style

_CAPTION = (
    "Each column is one loop without audio: the same offer unbounded (red, dashed) and bounded "
    "(blue). Top: KV pool occupancy. Bottom: share of frames answered by their deadline, of those "
    "released in each frame budget. Dotted: when arithmetic expected the unbounded pool to be "
    "full, before the run. Shaded: sessions of the unbounded variant are silent."
)


def draw(runs: pd.DataFrame, frames: pd.DataFrame, pool: pd.DataFrame, stem: Path) -> list[Path]:
    """Draw from the tables of harness/experiments/beyond_voice.py; returns the files."""
    use_house_style()
    shown = runs[runs["run_digest"].isin(frames["run_digest"].unique())]
    loops = list(dict.fromkeys(shown["model"]))
    figure, axes = plt.subplots(
        2,
        len(loops),
        figsize=(3.7 * len(loops), 4.6),
        sharex="col",
        sharey="row",
        squeeze=False,
        height_ratios=(1.2, 1),
    )
    for column, loop in enumerate(loops):
        top, bottom = axes[:, column]
        variants = shown[shown["model"] == loop].to_dict(orient="records")
        for run in variants:
            of_run = frames[frames["run_digest"] == run["run_digest"]]
            _variant(top, bottom, run, of_run, pool[pool["run_digest"] == run["run_digest"]])
        for run in variants:
            if run["retention_kind"] == "unbounded":
                _mark((top, bottom), run, frames[frames["run_digest"] == run["run_digest"]])
        first = variants[0]
        top.set_title(
            f"{first['title']}\nN = {first['num_sessions']}, B = {first['frame_budget_s']:g} s, "
            f"{first['prompt_tokens']} tokens in, {first['output_tokens']:.0f} out",
            fontsize=8.5,
        )
        bottom.set_xlabel("elapsed time (s)")
        bottom.set_xlim(0, max(run["duration_s"] for run in variants))
    axes[0, 0].set_ylabel("KV pool occupancy")
    axes[0, 0].set_ylim(0, 1.05)
    axes[1, 0].set_ylabel("frames answered in time")
    axes[1, 0].set_ylim(-0.04, 1.05)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncol=len(labels), bbox_to_anchor=(0.5, 1.06))
    figure.tight_layout()
    add_caption(figure, _CAPTION, shown["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _variant(
    top: Axes,
    bottom: Axes,
    run: dict[Hashable, Any],
    frames: pd.DataFrame,
    samples: pd.DataFrame,
) -> None:
    """Occupancy and answers of one run."""
    is_unbounded = run["retention_kind"] == "unbounded"
    colour = COLOURS["dead"] if is_unbounded else COLOURS["answer"]
    style: dict[str, Any] = {"color": colour, "ls": "--" if is_unbounded else "-", "lw": 1.6}
    label = "unbounded" if is_unbounded else str(run["variant"])
    top.plot(samples["t_s"], samples["occupancy"], label=label, **style)
    shares = answered_shares(frames, run["frame_budget_s"])
    # The last share holds until its period is over.
    bottom.stairs(
        shares["answered"], [*shares["release_s"], run["duration_s"]], baseline=None, **style
    )


def _mark(axes: Iterable[Axes], run: dict[Hashable, Any], frames: pd.DataFrame) -> None:
    """What was expected of the unbounded variant, and when it went silent."""
    silent = frames[frames["silent"]]
    for axis in axes:
        if pd.notna(run["expected_saturation_s"]):
            axis.axvline(
                run["expected_saturation_s"],
                color=COLOURS["budget"],
                ls=":",
                lw=1.8,
                label="unbounded: full pool, expected",
            )
        if not silent.empty:
            axis.axvspan(
                silent["release_s"].min(),
                silent["deadline_s"].max(),
                color=COLOURS["silence"],
                alpha=0.5,
                lw=0,
                zorder=0,
                label="unbounded: silence",
            )
