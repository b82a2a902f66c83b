"""Every run of the wall matrix as a strip in time, coloured by what its callers heard.

Paper: Fig 4b, Fig 5, Table 1.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from harness.figures.style import COLOURS, add_caption, save, use_house_style

_CAPTION = (
    "Each strip is one run of fresh calls. Blue: every call is answered; orange: some calls have "
    "gone silent; red: nobody is answered any more. k/n: collapsed runs, with the exact 95 % "
    "interval; 'wall': runs that the paper's rule would count."
)


def draw(runs: pd.DataFrame, shares: pd.DataFrame, stem: Path) -> list[Path]:
    """Draw from the tables of harness/experiments/wall_matrix.py; returns the files."""
    use_house_style()
    variants = list(dict.fromkeys(runs["variant"]))
    sizes = sorted(runs["num_sessions"].unique())
    figure, axes = plt.subplots(
        len(variants),
        len(sizes),
        figsize=(4.6 * len(sizes), 2.5 * len(variants)),
        sharex=True,
        squeeze=False,
    )
    for row, variant in enumerate(variants):
        for column, size in enumerate(sizes):
            chosen = (runs["variant"] == variant) & (runs["num_sessions"] == size)
            share = shares[(shares["variant"] == variant) & (shares["num_sessions"] == size)]
            _strips(axes[row, column], runs[chosen])
            found = share.iloc[0]
            axes[row, column].set_title(
                f"{variant}, N = {size}: {found['collapsed']}/{found['runs']} collapsed "
                f"[{found['collapsed_low']:.2f}, {found['collapsed_high']:.2f}], "
                f"wall {found['walled']}/{found['runs']}",
                fontsize=8,
            )
    for axis in axes[-1]:
        axis.set_xlabel("elapsed time (s)")
    for axis in axes[:, 0]:
        axis.set_ylabel("run (seed)")
    handles = [
        Patch(color=COLOURS["answer"], label="all calls answered"),
        Patch(color=COLOURS["budget"], label="some calls silent"),
        Patch(color=COLOURS["dead"], label="nobody answered"),
    ]
    figure.legend(handles=handles, loc="upper center", ncol=3, bbox_to_anchor=(0.5, 1.04))
    figure.tight_layout()
    add_caption(figure, _CAPTION, runs["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _strips(axis: Axes, runs: pd.DataFrame) -> None:
    for place, run in enumerate(runs.to_dict(orient="records")):
        end_s = run["duration_s"]
        onset_s = run["silence_onset_s"]
        silent_s = end_s if pd.isna(onset_s) else onset_s
        last_s = min(end_s, run["last_token_s"]) if pd.notna(run["last_token_s"]) else 0.0
        # Tokens that come until the very end mean that somebody is still answered.
        dead_s = last_s if end_s - last_s > 2 * run["frame_budget_s"] else end_s
        parts = (
            (0.0, min(silent_s, dead_s), COLOURS["answer"]),
            (min(silent_s, dead_s), dead_s, COLOURS["budget"]),
            (dead_s, end_s, COLOURS["dead"]),
        )
        for start_s, stop_s, colour in parts:
            axis.barh(place, stop_s - start_s, left=start_s, height=0.8, color=colour, lw=0)
    axis.set_yticks(range(len(runs)), [str(seed) for seed in runs["seed"]], fontsize=7)
    axis.invert_yaxis()
