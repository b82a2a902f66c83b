"""What AIMD settles at, ramp by ramp and seed by seed, against what can be served.

Paper: Fig 7's N* = 209, with the authors' other published ramps beside it.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from harness.analysis.schedulable import interval_of
from harness.analysis.tables import Tables
from harness.figures.style import COLOURS, add_caption, save, use_house_style

_BANDS = {"unbounded": COLOURS["dead"], "bounded": COLOURS["answer"]}
_TARGET_COLOURS = (COLOURS["budget"], COLOURS["running"], COLOURS["pool"])


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw from the tables of harness/experiments/schedulable.py; returns the files."""
    use_house_style()
    runs, truth, paper = tables[""], tables["truth"], tables["paper"]
    ramps = runs[runs["settled_sessions"].notna()]
    rates = sorted(ramps["arrival_rate_per_s"].unique())
    figure, axes = plt.subplots(1, 3, figsize=(13.2, 4.0))
    panels = (
        ("settled_sessions", "calls let in, N*(AIMD)"),
        ("converged_s", "time to converge (s)"),
        ("missed_after", "frames missed afterwards"),
    )
    for axis, (column, label) in zip(axes, panels, strict=True):
        _ramps(axis, ramps, column, rates)
        axis.set_ylabel(label)
        axis.set_xlabel("arrivals a second")
        axis.set_xticks(range(len(rates)), [f"{rate:g}" for rate in rates])
        axis.set_xlim(-0.5, len(rates) - 0.2)
    _truth(axes[0], truth)
    paper = paper[paper["arrival_rate_per_s"].isin(rates)]
    _paper(axes[0], paper, rates)
    _censored(axes[0], tables["bias"], rates)
    # Room for the legend above the highest dot, band and star.
    drawn = [ramps["settled_sessions"], truth["served_sessions"], paper["admitted"]]
    axes[0].set_ylim(0, 1.7 * max(float(column.max()) for column in drawn if column.notna().any()))
    axes[2].set_ylim(bottom=-0.002)
    axes[2].axhline(0.01, color="black", lw=1, ls="--", label="1 %")
    axes[0].legend(fontsize=7, loc="upper left")
    axes[2].legend(fontsize=7, loc="upper left")
    tries = runs[runs["served"].notna()]
    first = tries.iloc[0] if len(tries) else runs.iloc[0]
    figure.suptitle(
        f"{first['model']}, B = {first['frame_budget_s']:g} s: schedulable concurrency over "
        f"{first['duration_s']:g} s and what AIMD finds on bounded KV"
    )
    figure.tight_layout()
    add_caption(figure, _caption(ramps, truth, paper), [*runs["evidence"], *paper["evidence"]])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _caption(ramps: pd.DataFrame, truth: pd.DataFrame, paper: pd.DataFrame) -> str:
    """What is drawn, in words: a live ramp stands alone, without medians, seeds or the authors'."""
    ramp = "Each dot is one seed's ramp, the line joins medians"
    if not ramps.duplicated(["target_s", "arrival_rate_per_s"]).any():
        ramp = "Each dot is one ramp"
    left = "calls that AIMD has let in at the last arrival"
    if truth["served_sessions"].notna().any():
        left += "; bands: the schedulable concurrency N* by bisection with fresh engines, lowest "
        left += "to highest" + (" over seeds" if truth["seed"].nunique() > 1 else "")
    if len(paper):
        left += "; stars: the authors' ramps (hollow: unbounded)"
    return (
        f"{ramp}. Left: {left}. Middle: when the number of calls came to stay within 5 %. "
        "Right: frames missed after that."
    )


def _ramps(axis: Axes, ramps: pd.DataFrame, column: str, rates: list[float]) -> None:
    targets = sorted(ramps["target_s"].unique())
    for number, target_s in enumerate(targets):
        chosen = ramps[ramps["target_s"] == target_s]
        colour = _TARGET_COLOURS[number % len(_TARGET_COLOURS)]
        shift = 0.16 * (number - (len(targets) - 1) / 2)
        places = chosen["arrival_rate_per_s"].map(rates.index) + shift
        jitter = 0.05 * ((chosen["seed"] % 5) - 2) / 2
        axis.scatter(places + jitter, chosen[column], s=12, color=colour, alpha=0.6, lw=0)
        medians = chosen.groupby("arrival_rate_per_s")[column].median()
        axis.plot(
            [rates.index(rate) + shift for rate in medians.index],
            medians,
            color=colour,
            lw=1.6,
            marker="_",
            label=f"AIMD, target {target_s:g} s",
        )


def _truth(axis: Axes, truth: pd.DataFrame) -> None:
    for variant, group in truth.groupby("variant"):
        found = interval_of(group)
        if found is None:
            continue
        median, low, high = found
        colour = _BANDS["unbounded" if variant == "unbounded" else "bounded"]
        top = high if high != float("inf") else median
        axis.axhspan(low, top, color=colour, alpha=0.18, lw=0)
        axis.axhline(median, color=colour, lw=1.2, ls="--", label=f"N* {variant}: {median:.0f}")


def _censored(axis: Axes, bias: pd.DataFrame, rates: list[float]) -> None:
    """Ramps that ended before anybody was shed say only that N* is at least this."""
    ended = bias[bias["is_censored"]]
    if len(ended):
        axis.scatter(
            ended["arrival_rate_per_s"].map(rates.index) - 0.12,
            ended["median"],
            marker="^",
            s=26,
            color="#555555",
            label="at least: all offered let in",
        )


def _paper(axis: Axes, paper: pd.DataFrame, rates: list[float]) -> None:
    for _, ramp in paper.iterrows():
        is_unbounded = ramp["variant"] == "unbounded"
        place = rates.index(ramp["arrival_rate_per_s"]) + 0.28
        axis.scatter(
            [place],
            [ramp["admitted"]],
            marker="*",
            s=70,
            edgecolor="black",
            facecolor="none" if is_unbounded else "black",
            lw=0.8,
            zorder=5,
        )
        is_short = ramp["shed"] == 0
        axis.annotate(
            f"{ramp['admitted']} of {ramp['offered']}",
            (place, ramp["admitted"]),
            xytext=(-4, -9) if is_short else (5, 0),
            textcoords="offset points",
            fontsize=6,
            va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5},
        )
