"""The trigger: the pool above what the scheduler runs and lets wait, a column a variant.

Paper: Fig 5.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib import pyplot as plt

from harness.figures.panels import side_legend
from harness.figures.style import COLOURS, add_caption, save, title_by_offer, use_house_style

_CAPTION = (
    "Top: KV pool occupancy; dotted: the pool is full. Bottom: requests that the scheduler runs, "
    "that wait for blocks, and that hold theirs while they wait for their next frame; together "
    "they are all N calls."
)
_COUNTS = (
    ("paused", "hold blocks, wait for audio", COLOURS["tick"]),
    ("running", "running", COLOURS["running"]),
    ("waiting", "wait for blocks", COLOURS["waiting"]),
)


def draw(runs: pd.DataFrame, pool: pd.DataFrame, stem: Path) -> list[Path]:
    """Draw from the tables of harness/experiments/trigger.py; returns the files."""
    use_house_style()
    shown = runs[runs["run_digest"].isin(pool["run_digest"].unique())]
    figure, axes = plt.subplots(
        2, len(shown), figsize=(4.6 * len(shown), 4.6), sharex=True, sharey="row", squeeze=False
    )
    for column, run in enumerate(shown.to_dict(orient="records")):
        top, bottom = axes[:, column]
        samples = pool[pool["run_digest"] == run["run_digest"]]
        samples = samples[samples["t_s"].between(0, run["duration_s"])]
        top.plot(samples["t_s"], samples["occupancy"], color=COLOURS["pool"], lw=1.8)
        top.set_ylim(0, 1.05)
        bottom.stackplot(
            samples["t_s"],
            [samples[name] for name, _, _ in _COUNTS],
            labels=[label for _, label, _ in _COUNTS],
            colors=[colour for _, _, colour in _COUNTS],
            lw=0,
        )
        bottom.set_ylim(0, run["num_sessions"])
        bottom.set_yticks([round(run["num_sessions"] * part) for part in (0, 0.25, 0.5, 0.75, 1)])
        if pd.notna(run["pool_full_s"]):
            for axis in (top, bottom):
                axis.axvline(run["pool_full_s"], color="black", ls=":", lw=1.2)
        top.set_title(f"{run['variant']}: {run['verdict']}", fontweight="bold")
        bottom.set_xlabel("elapsed time (s)")
    axes[0, 0].set_ylabel("KV pool occupancy")
    axes[1, 0].set_ylabel("requests")
    side_legend(axes[1, -1], axes[1], x=1.02)
    title_by_offer(figure, shown.iloc[0])
    figure.tight_layout()
    add_caption(figure, _CAPTION, shown["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths
