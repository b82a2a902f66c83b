"""Admission over time: who is in below what cap, above what latency they get.

Paper: Fig 7's two panels, for both variants and for each controller; below them how well each
signal tells the load.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from harness.analysis.tables import Tables
from harness.figures.style import COLOURS, add_caption, save, use_house_style

_FLOOR_S = 1e-3
_VARIANTS = {"bounded": COLOURS["answer"], "unbounded": COLOURS["dead"]}
# Where both variants do the same, the thin line lies on the wide one.
_WIDTHS = {"bounded": 3.4, "unbounded": 1.5}
# The top of the latency axis, and where never-answered frames are drawn, in frame budgets.
_TOP, _NEVER = 240, {"bounded": 90, "unbounded": 160}
_CAPTION = (
    "Top: sessions that are in, and the controller's session cap (hairline), while calls arrive "
    "one by one. Middle: 95th percentile of latency a frame budget, release to last token, and "
    "what the paper's gateway would log (dotted); crosses: over 5 % of that budget's frames were "
    "never answered. Bottom: the same two latencies (filled: contract, hollow: gateway) against "
    "the sessions that are in, until the last arrival, with Spearman's rank correlation. A wait of "
    "0 is drawn at 1 ms."
)


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw from the tables of harness/experiments/admission.py; returns the files."""
    use_house_style()
    runs, control, latency = tables[""], tables["control"], tables["latency"]
    signals = tables["signals"]
    controllers = list(dict.fromkeys(runs["controller"].dropna()))
    figure, axes = plt.subplots(
        3,
        len(controllers),
        figsize=(max(8.0, 4.3 * len(controllers) + 0.6), 8.2),
        sharey="row",
        squeeze=False,
    )
    for column, controller in enumerate(controllers):
        of_controller = runs[runs["controller"] == controller]
        for _, run in of_controller.iterrows():
            colour = _VARIANTS[_kind(run)]
            of_run = control[control["run_digest"] == run["run_digest"]]
            _sessions(axes[0, column], of_run, colour, run)
            seen = latency[latency["run_digest"] == run["run_digest"]]
            _latency(axes[1, column], seen, run)
            _signal(axes[2, column], seen, run)
        _correlations(axes[2, column], signals[signals["controller"] == controller])
        first = of_controller.iloc[0]
        axes[0, column].axvline(first["ramp_end_s"], color=COLOURS["tick"], lw=1, ls=":")
        for axis in axes[1:, column]:
            axis.axhline(first["frame_budget_s"], color="black", lw=1, ls="--")
            axis.axhline(first["target_s"], color=COLOURS["budget"], lw=1.2, ls="--")
        axes[0, column].set_title(_title(of_controller), fontsize=8.5)
        axes[0, column].text(
            0.5,
            1.24,
            controller,
            transform=axes[0, column].transAxes,
            ha="center",
            fontweight="bold",
        )
        axes[1, column].set_xlabel("elapsed time (s)")
        axes[2, column].set_xlabel("sessions that are in")
        axes[2, column].set_xlim(0, 1.05 * runs["offered"].max())
    axes[0, 0].set_ylabel("sessions")
    axes[0, 0].set_ylim(0, 1.05 * runs["offered"].max())
    axes[1, 0].set_ylabel("frame latency, p95 (s)")
    budget_s = runs["frame_budget_s"].iloc[0]
    axes[2, 0].set_ylabel("frame latency, p95 (s)")
    for axis in axes[1:, 0]:
        axis.set_yscale("log")
        axis.set_ylim(0.7 * _FLOOR_S, _TOP * budget_s)
    first = runs.iloc[0]
    figure.suptitle(
        f"{first['model']}: {first['offered']:.0f} calls offered at "
        f"{first['arrival_rate_per_s']:g} a second, B = {budget_s:g} s"
    )
    _legend(axes[1, -1], first)
    figure.tight_layout()
    add_caption(figure, _CAPTION, runs["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _kind(run: pd.Series) -> str:
    return "unbounded" if run["retention_kind"] == "unbounded" else "bounded"


def _title(runs: pd.DataFrame) -> str:
    return "\n".join(
        f"{_kind(run)}: {run['settled_sessions']:.0f} let in, {run['verdict']}, "
        f"{run['steady_missed']:.1%} late at the end"
        for _, run in runs.iterrows()
    )


def _sessions(axis: Axes, control: pd.DataFrame, colour: str, run: pd.Series) -> None:
    end_s = run["duration_s"]
    for kind, width in (("live", _WIDTHS[_kind(run)]), ("cap", 0.7)):
        line = control[control["kind"] == kind]
        if line.empty:
            continue
        # What nothing changed any more stays as it was until the run's end.
        times, values = [*line["t_s"], end_s], [*line["value"], line["value"].iloc[-1]]
        axis.step(times, values, where="post", color=colour, lw=width)


def _latency(axis: Axes, latency: pd.DataFrame, run: pd.Series) -> None:
    colour = _VARIANTS[_kind(run)]
    budget_s = run["frame_budget_s"]
    axis.plot(latency["t_s"], latency["p95_s"], color=colour, lw=_WIDTHS[_kind(run)])
    axis.plot(
        latency["t_s"], latency["wait_p95_s"].clip(lower=_FLOOR_S), color=colour, lw=1, ls=":"
    )
    never = latency[latency["p95_s"].isna()]
    height = _NEVER[_kind(run)] * budget_s
    axis.scatter(
        never["t_s"], [height] * len(never), marker="x", s=12, linewidths=0.8, color=colour
    )


def _signal(axis: Axes, latency: pd.DataFrame, run: pd.Series) -> None:
    """What load looks like in each signal, while calls arrive."""
    ramp = latency[latency["t_s"] <= run["ramp_end_s"]]
    colour, size = _VARIANTS[_kind(run)], 8 * _WIDTHS[_kind(run)]
    axis.scatter(ramp["live"], ramp["p95_s"], s=size, color=colour, lw=0)
    waits = ramp["wait_p95_s"].clip(lower=_FLOOR_S)
    axis.scatter(ramp["live"], waits, s=size, facecolor="none", edgecolor=colour, lw=0.7)


def _correlations(axis: Axes, signals: pd.DataFrame) -> None:
    lines = [
        f"{row['signal']}, {_kind(row)}: "
        + ("too short a ramp" if pd.isna(row["rho"]) else f"$\\rho$ = {row['rho']:+.2f}")
        for _, row in signals.sort_values(["signal", "retention_kind"]).iterrows()
    ]
    axis.text(
        0.03, 0.96, "\n".join(lines), transform=axis.transAxes, ha="left", va="top", fontsize=7.5
    )


def _legend(axis: Axes, run: pd.Series) -> None:
    def line(colour: str, width: float, style: str = "-") -> Line2D:
        return Line2D([], [], color=colour, lw=width, ls=style)

    handles = {
        **{name: line(colour, _WIDTHS[name]) for name, colour in _VARIANTS.items()},
        "session cap (top)": line("#555555", 0.7),
        "gateway's wait (middle)": line("#555555", 1.0, ":"),
        "gateway's wait (bottom)": Line2D(
            [], [], marker="o", ls="", markerfacecolor="none", color="#555555"
        ),
        f"target {run['target_s']:g} s": line(COLOURS["budget"], 1.2, "--"),
        f"deadline {run['frame_budget_s']:g} s": line("black", 1.0, "--"),
        "last arrival": line(COLOURS["tick"], 1.0, ":"),
    }
    axis.legend(
        list(handles.values()),
        list(handles),
        loc="upper left",
        bbox_to_anchor=(1.02, 1.0),
        fontsize=8,
    )
