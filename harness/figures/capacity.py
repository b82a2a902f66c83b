"""How many calls a fresh engine serves, model by model, and what says no.

Paper: Fig 9, with Fig 6b's memory ceiling on the same axis.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from harness.analysis.tables import Tables
from harness.figures.style import COLOURS, add_caption, save, use_house_style

_BINDS = {
    "deadline": COLOURS["answer"],
    "encoder": COLOURS["budget"],
    "front end": COLOURS["running"],
    "memory": COLOURS["dead"],
}
_CAPTION = (
    "Bars: the largest number of calls with at most 1 % late frames in 90 s on a fresh engine, "
    "stock vLLM unless said otherwise; the light part ends at the smallest number that failed. "
    "Colour: what binds there. Black: the paper's range (arrow: at least). Triangles: calls "
    "that the KV pool holds after 90 s by arithmetic, unbounded (filled) and with W = 1024, S = "
    "16 (hollow). Step times marked 'derived' come from data sheets and published slopes, not "
    "from measured steps."
)


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw from the tables of harness/experiments/capacity.py; returns the files."""
    use_house_style()
    found, paper = tables["capacity"], tables["paper"].set_index("model")
    figure, axis = plt.subplots(figsize=(8.6, 1.2 + 0.75 * len(found)))
    for place, row in enumerate(found.to_dict(orient="records")):
        _bar(axis, place, pd.Series(row))
        if row["model"] in paper.index:
            _paper(axis, place, paper.loc[row["model"]])
    labels = [
        f"{row['model']}\n{_steps(row['step_evidence'])}"
        + ("" if row["variant"] == "unbounded" else f"\n{row['variant']}")
        for row in found.to_dict(orient="records")
    ]
    axis.set_yticks(range(len(found)), labels, fontsize=8)
    axis.invert_yaxis()
    axis.set_xscale("log", base=2)
    axis.set_xticks([8, 16, 32, 64, 128, 256, 512, 1024], minor=False)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_xlim(6, 2048)
    axis.set_xlabel("concurrent calls")
    shown: dict[str, Artist] = {
        f"bound by {name}": Patch(color=colour)
        for name, colour in _BINDS.items()
        if name in set(found["binds"])
    }
    shown["the paper"] = Line2D([], [], color="black", lw=2.2)
    for label, face in (("memory, unbounded", COLOURS["dead"]), ("memory, bounded", "none")):
        shown[label] = Line2D(
            [], [], ls="", marker="v", markerfacecolor=face, markeredgecolor=COLOURS["dead"]
        )
    axis.legend(
        list(shown.values()), list(shown), loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=8
    )
    axis.set_title(f"Fresh capacity over {found['horizon_s'].iloc[0]:g} s")
    figure.tight_layout()
    add_caption(figure, _CAPTION, [*found["evidence"], *paper["evidence"]])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _steps(evidence: str) -> str:
    return "step times: paper" if evidence == "paper" else "step times: derived"


def _bar(axis: Axes, place: int, row: pd.Series) -> None:
    colour = _BINDS.get(row["binds"], COLOURS["tick"])
    served = 0.0 if pd.isna(row["served_sessions"]) else row["served_sessions"]
    axis.barh(place, served, height=0.5, color=colour, lw=0)
    text = f"≥ {served:.0f}"
    if pd.notna(row["failed_sessions"]):
        axis.barh(
            place,
            row["failed_sessions"] - served,
            left=served,
            height=0.5,
            color=colour,
            alpha=0.35,
            lw=0,
        )
        last = row["failed_sessions"] - 1
        text = f"{served:.0f}" if last == served else f"{served:.0f} to {last:.0f}"
    axis.annotate(
        text,
        (max(served, 7.0), place),
        xytext=(-4, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        color="white",
        fontsize=8,
    )
    for column, face in (("memory_ceiling", COLOURS["dead"]), ("bounded_ceiling", "none")):
        if pd.notna(row[column]):
            axis.scatter(
                [row[column]],
                [place],
                marker="v",
                s=46,
                facecolor=face,
                edgecolor=COLOURS["dead"],
                zorder=4,
            )


def _paper(axis: Axes, place: int, row: pd.Series) -> None:
    high = row["low"] * 1.35 if pd.isna(row["high"]) else row["high"]
    axis.plot([row["low"], high], [place + 0.36] * 2, color="black", lw=2.2)
    marker = ">" if pd.isna(row["high"]) else "|"
    axis.scatter([high], [place + 0.36], marker=marker, color="black", s=26, zorder=4)
    axis.scatter([row["low"]], [place + 0.36], marker="|", color="black", s=26, zorder=4)
