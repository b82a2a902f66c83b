"""Live against simulated: instants of staggered pairs, one trace of both, and samples of runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from harness.analysis.tables import Tables
from harness.figures.style import COLOURS, add_caption, save, use_house_style

_SIDES = {"live": COLOURS["dead"], "simulated": COLOURS["answer"]}
_INSTANTS = {
    "pool_full_s": ("pool full", "o", COLOURS["pool"]),
    "first_preemption_s": ("first preemption", "^", COLOURS["budget"]),
    "last_token_s": ("last token", "s", COLOURS["running"]),
}
_CAPTION = (
    "a: instants of staggered calls, a mark for each live run and its simulation; on the "
    "line they are equal. b: KV pool of one such pair, the one with the most preemptions. "
    "c, d: calls that are due at once, many runs of one offer: live does not repeat itself, "
    "so samples are compared. c: frames answered of each session of a run, from the worst "
    "served to the best (mean, and 10 to 90 % of runs). d: share of runs with at most so "
    "many preemptions. p: chance of such a difference if live and simulated were the same, "
    "corrected for the number of tests."
)


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw from the tables of harness/experiments/fidelity.py; returns the files."""
    use_house_style()
    figure, axes = plt.subplots(2, 2, figsize=(9.6, 7.0))
    pairs, samples = tables["pairs"], tables["samples"]
    tests = tables["tests"]
    if len(pairs):
        _instants(axes[0, 0], pairs)
        _trace(axes[0, 1], pairs, tables["pool"])
    else:
        _nothing(axes[0])
    if samples["role"].nunique() == len(_SIDES):
        _sessions(axes[1, 0], samples, tests)
        _preemptions(axes[1, 1], samples, tests)
    else:
        _nothing(axes[1])
    for letter, axis in zip("abcd", axes.flat, strict=True):
        axis.set_title(f"{letter}  {axis.get_title()}", loc="left", fontsize=9, fontweight="bold")
        axis.set_title("")
    figure.tight_layout()
    add_caption(figure, _CAPTION, tables[""]["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _nothing(axes: Iterable[Axes]) -> None:
    for axis in axes:
        axis.text(0.5, 0.5, "no valid run to compare", ha="center", transform=axis.transAxes)
        axis.set(xticks=[], yticks=[])


def _instants(axis: Axes, pairs: pd.DataFrame) -> None:
    for name, (label, marker, colour) in _INSTANTS.items():
        axis.scatter(
            pairs[f"{name}_live"],
            pairs[f"{name}_simulated"],
            marker=marker,
            s=30,
            facecolor="none",
            edgecolor=colour,
            lw=1.3,
            label=label,
        )
    instants = pairs[[f"{name}_{side}" for name in _INSTANTS for side in _SIDES]]
    ends = (0.9 * float(instants.min().min()), 1.05 * float(pairs["duration_s"].max()))
    axis.plot(ends, ends, color="#555555", lw=1, zorder=0)
    same = int((pairs["verdict_live"] == pairs["verdict_simulated"]).sum())
    axis.set(xlim=ends, ylim=ends, xlabel="live (s)", ylabel="simulated (s)")
    axis.set_title(f"staggered: {same} of {len(pairs)} pairs with one verdict")
    axis.legend(loc="upper left", fontsize=8)


def _trace(axis: Axes, pairs: pd.DataFrame, pool: pd.DataFrame) -> None:
    pair = pairs.iloc[int(pairs["preemptions_live"].argmax())]
    for side, colour in _SIDES.items():
        samples = pool[pool["run_digest"] == pair[f"run_{side}"]]
        is_live = side == "live"
        axis.plot(
            samples["t_s"],
            samples["occupancy"],
            color=colour,
            lw=2.6 if is_live else 1.2,
            alpha=0.55 if is_live else 1.0,
            ls="-" if is_live else "--",
            label=f"{side}: {pair[f'verdict_{side}']}, {pair[f'preemptions_{side}']} preempted",
        )
    axis.set(ylim=(0, 1.05), xlim=(0, None), xlabel="elapsed time (s)")
    axis.set_ylabel("KV pool occupancy")
    axis.set_title(f"{pair['variant']}, N = {pair['num_sessions']}, seed {pair['seed']}")
    axis.legend(loc="lower right", fontsize=8)


def _sessions(axis: Axes, samples: pd.DataFrame, tests: pd.DataFrame) -> None:
    for side, colour in _SIDES.items():
        runs = samples[samples["role"] == side]
        served = np.array(runs["sessions"].tolist())
        ranks = np.arange(1, served.shape[1] + 1)
        axis.fill_between(
            ranks, *np.quantile(served, [0.1, 0.9], axis=0), color=colour, alpha=0.15, lw=0
        )
        style = "-o" if side == "live" else "--s"
        axis.plot(
            ranks, served.mean(axis=0), style, color=colour, ms=4, label=f"{side}, {len(runs)} runs"
        )
    axis.set(xlabel="session, from the worst served to the best", ylim=(0, None))
    axis.set_ylabel("frames answered")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_title(f"synchronised: who is served, {_p(tests, 'sessions')}")
    axis.legend(loc="lower right", fontsize=8)


def _preemptions(axis: Axes, samples: pd.DataFrame, tests: pd.DataFrame) -> None:
    most = int(samples["num_preemptions"].max()) + 1
    for side, colour in _SIDES.items():
        runs = samples[samples["role"] == side]
        counts = np.arange(-1, most + 1)
        shares = [(runs["num_preemptions"] <= count).mean() for count in counts]
        collapsed = int(runs["is_collapse"].sum())
        axis.step(
            counts,
            shares,
            where="post",
            color=colour,
            lw=1.8,
            ls="-" if side == "live" else "--",
            label=f"{side}: {collapsed}/{len(runs)} collapsed",
        )
    axis.set(xlim=(-0.5, most), ylim=(0, 1.03), xlabel="preemptions in a run")
    axis.set_ylabel("share of runs")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_title(f"synchronised: preemptions, {_p(tests, 'num_preemptions')}")
    axis.legend(loc="lower right", fontsize=8)


def _p(tests: pd.DataFrame, quantity: str) -> str:
    p = float(tests.loc[tests["quantity"] == quantity, "p_corrected"].iloc[0])
    return "too few runs for a test" if np.isnan(p) else f"p = {p:.2f}"
