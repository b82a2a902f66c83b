"""Two ways to a mixed count, live: the offer decides, or the instant does."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from harness.figures.style import COLOURS, add_caption, save, use_house_style

_CAPTION = (
    "Left: staggered arrivals, another offer each run: demand counted from the schedule before the "
    "run, against misses measured in it. Right: one and the same offer each run, all calls due at "
    "once: who is preempted, how many, and whether anybody is left differ from run to run."
)
_LOOKS = {
    "alive": ("o", COLOURS["answer"]),
    "overloaded": ("s", COLOURS["tick"]),
    "shedding": ("^", COLOURS["budget"]),
    "stalled": ("X", COLOURS["dead"]),
}
_OTHER = ("P", "#444444")


def draw(runs: pd.DataFrame, stem: Path) -> list[Path]:
    """Draw from the runs of harness/experiments/wall_matrix_live.py; returns the files."""
    use_house_style()
    figure, (offer, instant) = plt.subplots(1, 2, figsize=(9.2, 3.6))
    staggered = runs[runs["offer"] == "staggered"]
    at_once = runs[runs["offer"] == "due at once"]
    _points(offer, staggered, "load", "deadline_miss_share")
    # Room for the legend, left of all points.
    offer.set_xlim(left=min(0.8, offer.get_xlim()[0]))
    offer.axvline(1.0, color=COLOURS["pool"], ls="--", lw=1.2)
    offer.text(1.0, 0.5, " pool", transform=offer.get_xaxis_transform(), fontsize=8)
    offer.set_xlabel("demand / pool, counted from the schedule")
    offer.set_ylabel("share of frames missed")
    offer.set_title("other answers each run", fontsize=9)
    _points(instant, at_once, "preemptions", "last_token_s")
    instant.set_xlabel("preemptions")
    instant.set_ylabel("last token (s)")
    instant.set_title("the same offer each run", fontsize=9)
    offer.legend(fontsize=7.5, loc="upper left", handletextpad=0.3)
    instant.legend(fontsize=7.5, loc="lower right", handletextpad=0.3)
    figure.tight_layout()
    add_caption(figure, _CAPTION, runs["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _points(axis: Axes, runs: pd.DataFrame, x: str, y: str) -> None:
    for (kind, verdict), rows in runs.groupby(["retention_kind", "verdict"], sort=False):
        marker, colour = _LOOKS.get(str(verdict), _OTHER)
        is_unbounded = kind == "unbounded"
        name = "unbounded" if is_unbounded else "bounded"
        axis.scatter(
            rows[x],
            rows[y],
            marker=marker,
            s=34,
            facecolors=colour if is_unbounded else "none",
            edgecolors=colour,
            linewidths=1.0,
            alpha=0.85,
            label=f"{name}, {verdict}: {len(rows)}",
        )
