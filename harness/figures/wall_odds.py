"""What decides a run of the wall matrix: the odds of a full pool, and who is dead after it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from harness.analysis.demand import odds_full
from harness.analysis.paper_walls import HORIZON_S
from harness.analysis.tables import Tables
from harness.figures.style import COLOURS, add_caption, save, use_house_style

_CAPTION = (
    "Load x = N r t / pool. Left: odds that a run's pool was full by then; lines: Phi(ln x / "
    "sigma) at the declared spread of growth between runs; dots: answer lengths drawn and "
    "counted; steps: simulated runs with a silent call so far. Diamonds: what the paper's "
    "rule counted (exact 95 % interval; quoted) at the loads that its growth (27 to 31 "
    "tokens/s) and pool (0.53 to 0.56 M tokens) allow. Dashed: the spread that 14 of 20 full "
    "pools would take. Middle: over time, with the exact interval of the simulated share. "
    "Right: calls that are dead at the end of each simulated run. The living share the pool, "
    "so it is 1 - 1/x, and a rule that looks at the median call sees nothing before x = 2."
)
_SIZE_COLOURS = ("#2a6f97", "#588157")
_PAPER = "#7b2cbf"
_MAX_LOAD = 2.4


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw from the tables of harness/experiments/wall_matrix.py; returns the files."""
    use_house_style()
    odds, paper, runs = tables["odds"], tables["paper"], tables[""]
    figure, (by_load, by_time, dead) = plt.subplots(1, 3, figsize=(13.0, 3.9))
    _over(by_load, odds, "load", has_interval=False)
    _needed_spread(by_load, tables["spread"])
    _cells(by_load, paper, paper["load"])
    by_load.set_xlim(0, _MAX_LOAD)
    by_load.set_xlabel("load x = demand / pool")
    by_load.set_ylabel("P(pool full)")
    by_load.set_title(f"spread between runs: sigma = {odds['sigma'].iloc[-1]:.1%}", fontsize=9)
    _over(by_time, odds, "t_s")
    shifted = HORIZON_S + np.linspace(-4, 4, len(paper))
    _cells(by_time, paper, pd.Series(shifted, index=paper.index), is_load=False)
    by_time.set_xlabel("elapsed time (s)")
    by_time.set_xlim(0, HORIZON_S + 12)
    _dead_share(dead, runs[runs["retention_kind"] == "unbounded"], paper)
    for axis in (by_load, by_time):
        axis.set_ylim(-0.03, 1.03)
        axis.legend(fontsize=7, loc="upper left", handlelength=1.4)
    figure.tight_layout()
    add_caption(figure, _CAPTION, runs["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _over(axis: Axes, odds: pd.DataFrame, column: str, *, has_interval: bool = True) -> None:
    for colour, (size, rows) in zip(_SIZE_COLOURS, odds.groupby("num_sessions"), strict=False):
        axis.plot(rows[column], rows["formula"], color=colour, lw=1.6, label=f"N = {size}")
        every = slice(None, None, 4)
        axis.plot(
            rows[column].iloc[every], rows["drawn"].iloc[every], ".", ms=5, color=colour, alpha=0.7
        )
        share = rows["silent"] / rows["n"]
        axis.step(rows[column], share, where="post", color=colour, lw=1.0, ls="-", alpha=0.8)
        if has_interval:
            axis.fill_between(
                rows[column], rows["low"], rows["high"], step="post", color=colour, alpha=0.10, lw=0
            )


def _needed_spread(axis: Axes, spread: pd.DataFrame) -> None:
    needed = spread.loc[spread["runs"] == "all", "sigma_needed"].iloc[0]
    if pd.isna(needed):
        return
    load = np.linspace(0.05, _MAX_LOAD, 200)
    axis.plot(
        load,
        odds_full(load, needed),
        color=COLOURS["tick"],
        ls="--",
        lw=1.3,
        label=f"14/20: sigma = {needed:.0%}",
    )


def _cells(axis: Axes, paper: pd.DataFrame, place: pd.Series, *, is_load: bool = True) -> None:
    share = paper["walled"] / paper["n"]
    vertical = np.clip([share - paper["low"], paper["high"] - share], 0, None)
    horizontal = (
        np.clip([place - paper["load_low"], paper["load_high"] - place], 0, None)
        if is_load
        else None
    )
    axis.errorbar(
        place,
        share,
        yerr=vertical,
        xerr=horizontal,
        fmt="D",
        ms=5,
        color=_PAPER,
        lw=1.1,
        capsize=2.5,
        label="paper: 4/10, 10/10",
        zorder=5,
    )


def _dead_share(axis: Axes, runs: pd.DataFrame, paper: pd.DataFrame) -> None:
    load = np.linspace(1.0, _MAX_LOAD, 100)
    axis.plot(load, 1 - 1 / load, color=COLOURS["pool"], lw=1.5, label="1 - 1/x")
    for colour, (size, of_size) in zip(_SIZE_COLOURS, runs.groupby("num_sessions"), strict=False):
        axis.scatter(
            of_size["load"],
            of_size["silent_share"],
            s=18,
            color=colour,
            label=f"N = {size}, simulated",
        )
    for index, cell in enumerate(paper.to_dict(orient="records")):
        axis.axvspan(
            cell["load_low"],
            cell["load_high"],
            color=_PAPER,
            alpha=0.10,
            lw=0,
            label="the paper's load at 300 s" if not index else None,
        )
        axis.text(
            cell["load"],
            0.03,
            f"N = {cell['num_sessions']}\n{cell['walled']}/{cell['n']}",
            ha="center",
            fontsize=7.5,
            color=_PAPER,
        )
    axis.axhline(
        0.5, color=COLOURS["dead"], ls=":", lw=1.2, label="half the calls: the median is dead"
    )
    axis.set_xlim(1.0, _MAX_LOAD)
    axis.set_ylim(0, 1.0)
    axis.set_xlabel("load x at the end")
    axis.set_ylabel("share of calls that are dead")
    axis.legend(fontsize=7.5, loc="upper left")
