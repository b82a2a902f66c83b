"""What age costs: waiting time, pool and host memory over the age of a call, one line a variant."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from harness.figures.style import COLOURS, add_caption, save, use_house_style

_STYLES = {
    # (pool bounded, host bounded) -> label, colour, dashes
    (False, False): ("stock vLLM", COLOURS["dead"], "--"),
    (False, True): ("host bounded only", COLOURS["dead"], "-"),
    (True, False): ("pool bounded only", COLOURS["answer"], "--"),
    (True, True): ("pool and host bounded", COLOURS["answer"], "-"),
}
_CAPTION = (
    "Medians over slices of the calls' age. From the left: release to first token; a line ends "
    "where no frame was answered any more. The same in gaps between two tokens, which a machine "
    "that drifts makes longer too: what is judged. KV pool. Growth of the resident memory of the "
    "run's processes since their first slice."
)


def draw(runs: pd.DataFrame, ages: pd.DataFrame, stem: Path) -> list[Path]:
    """Draw from the tables of harness/experiments/long_life.py; returns the files."""
    use_house_style()
    figure, axes = plt.subplots(1, 4, figsize=(14, 3.6))
    for run in runs.to_dict(orient="records"):
        of_run = ages[ages["run_digest"] == run["run_digest"]].sort_values("age_s")
        if of_run.empty:
            continue
        key = (run["retention_kind"] != "unbounded", bool(run["host_bound"]))
        label, colour, dashes = _STYLES[key]
        style = {"color": colour, "ls": dashes, "lw": 1.8}
        label = f"{label}: {run['verdict']}"
        axes[0].plot(of_run["age_s"], of_run["first_token_p50_s"] * 1e3, label=label, **style)
        axes[1].plot(of_run["age_s"], of_run["wait_in_gaps"], **style)
        axes[2].plot(of_run["age_s"], of_run["occupancy"], **style)
        memory = of_run["host_bytes"].astype(float)
        axes[3].plot(of_run["age_s"], (memory - memory.iloc[0]) / 2**20, **style)
    titles = (
        "first token after release (ms)",
        "first token, in token gaps",
        "KV pool occupancy",
        "host memory grown (MiB)",
    )
    for axis, title in zip(axes, titles, strict=True):
        _finish(axis, title)
    axes[0].set_ylim(bottom=0)
    axes[1].set_ylim(bottom=0)
    axes[2].set_ylim(0, 1.05)
    figure.legend(loc="lower center", ncols=4, bbox_to_anchor=(0.5, 1.0), fontsize=9)
    first = runs.iloc[0]
    figure.suptitle(
        f"{first['model']}, N = {first['num_sessions']}, B = {first['frame_budget_s']:g} s", y=1.0
    )
    figure.tight_layout()
    add_caption(figure, _CAPTION, runs["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _finish(axis: Axes, title: str) -> None:
    axis.set_title(title)
    axis.set_xlabel("age of the calls (s)")
    axis.grid(axis="y", lw=0.4, alpha=0.6)
