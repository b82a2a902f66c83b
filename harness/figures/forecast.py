"""The forecast of a full pool on its trace, and its error by how much of the trace it saw.

Paper: Fig 6a, Eq 1.
"""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from harness.analysis.tables import Tables
from harness.figures.style import COLOURS, add_caption, save, use_house_style

Record = dict[Hashable, Any]

# Marks of the observed instants: column of the summary, name, line style, width and colour.
_INSTANTS = (
    ("pool_full_s", "pool full", "-", 2.4, COLOURS["pool"]),
    ("first_preemption_s", "first preemption", "--", 1.2, COLOURS["budget"]),
    ("silence_onset_s", "first silent frame", "-.", 1.2, COLOURS["dead"]),
    ("last_token_s", "last token ever", ":", 1.2, "black"),
)
_CAPTION = (
    "Left: occupancy, the line fitted on the shaded beginning, where it reaches 1 (diamond, with "
    "its 95 % interval from a moving-block bootstrap of the growth), the four instants that "
    "follow, and the share of the calls gone silent for good (thin black). Middle: the same, "
    "closer. Right: error of the forecast against the pool really full, by occupancy when it was "
    "made; bars: interval. {coverage}"
)


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw from the tables of harness/experiments/forecast.py; returns the files."""
    use_house_style()
    forecasts, runs = tables["forecast"], tables[""]
    seen = [] if forecasts.empty else list(forecasts["run_digest"].unique())
    shown = runs[runs["run_digest"].isin(seen)]
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11.4, 3.6))
    for run in shown.to_dict(orient="records")[:1]:
        of_run = {
            part: tables[part][tables[part]["run_digest"] == run["run_digest"]]
            for part in ("pool", "forecast", "sessions")
        }
        asked = of_run["forecast"][of_run["forecast"]["is_asked"]].to_dict(orient="records")
        _trace(left, run, of_run["pool"], asked, of_run["sessions"])
        _closer(middle, run, of_run["pool"], asked)
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncol=4, bbox_to_anchor=(0.5, 1.0))
        name = f"{run['model']}, N = {run['num_sessions']}, {run['variant']}: {run['verdict']}"
        left.set_title(name, fontweight="bold", fontsize=8)
    _errors(right, shown, forecasts)
    figure.tight_layout()
    add_caption(figure, _CAPTION.format(coverage=_coverage(forecasts)), runs["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _trace(
    axis: Axes, run: Record, samples: pd.DataFrame, asked: list[Record], sessions: pd.DataFrame
) -> None:
    """The whole run: occupancy, what the forecast saw, and who had gone silent by when."""
    end_s = run["duration_s"]
    _occupancy(axis, run, samples)
    # Without a token in three frames and more: later ones may only have said their last answer.
    last = sessions["last_token_s"].dropna().sort_values()
    ended = last[last < end_s - 3 * run["frame_budget_s"]]
    share = np.arange(1, len(ended) + 1) / len(sessions)
    axis.step(
        [0, *ended], [0, *share], where="post", color="black", lw=0.8, label="calls gone silent"
    )
    for forecast in asked:
        seen_s = (run["frame_budget_s"], forecast["until_s"])
        axis.axvspan(*seen_s, color=COLOURS["budget"], alpha=0.15, lw=0, label="fitted on")
        _mark(axis, run, forecast)
    axis.set_xlim(0, 1.01 * end_s)
    axis.set_ylim(0, 1.08)
    axis.set_ylabel("KV pool occupancy")


def _closer(axis: Axes, run: Record, samples: pd.DataFrame, asked: list[Record]) -> None:
    """The same around the instant at which the pool is full."""
    _occupancy(axis, run, samples)
    for forecast in asked:
        _mark(axis, run, forecast)
        near = [forecast[name] for name in ("low_s", "high_s", "saturation_s")]
        near += [run[name] for name in ("pool_full_s", "first_preemption_s", "silence_onset_s")]
        near = [instant_s for instant_s in near if pd.notna(instant_s)]
        margin = 0.1 * (max(near) - min(near)) + run["frame_budget_s"] / 4
        axis.set_xlim(min(near) - margin, max(near) + margin)
        lowest = forecast["rho0"] + forecast["rate_per_s"] * (min(near) - margin)
        axis.set_ylim(lowest, 1 + 0.3 * (1 - lowest))
    axis.set_title("closer", fontweight="bold", fontsize=8)


def _occupancy(axis: Axes, run: Record, samples: pd.DataFrame) -> None:
    shown = samples[samples["t_s"].between(0, run["duration_s"])]
    axis.plot(shown["t_s"], shown["occupancy"], color=COLOURS["tick"], lw=3, label="occupancy")
    axis.set_xlabel("elapsed time (s)")


def _mark(axis: Axes, run: Record, forecast: Record) -> None:
    """The line, where it reaches 1 with its interval, and the instants as they were observed."""
    full_s, low_s, high_s = forecast["saturation_s"], forecast["low_s"], forecast["high_s"]
    colour, end_s = COLOURS["budget"], run["duration_s"]
    words = f"forecast: {full_s:.1f} s"
    if pd.notna(low_s):
        words += f" ({low_s:.1f} to {high_s:.1f})"
    axis.plot([0, full_s], [forecast["rho0"], 1.0], color=colour, lw=1.4, label=words)
    error = [[full_s - low_s], [high_s - full_s]] if pd.notna(low_s) else None
    axis.errorbar([full_s], [1.0], xerr=error, fmt="D", ms=5, capsize=4, color=colour, zorder=5)
    for column, label, style, width, shade in _INSTANTS:
        instant_s = run[column]
        if pd.isna(instant_s):
            continue
        is_open = column == "last_token_s" and instant_s > end_s - run["frame_budget_s"]
        words = f"{label}: not in {end_s:g} s" if is_open else f"{label}: {instant_s:.1f} s"
        axis.axvline(min(instant_s, end_s), color=shade, ls=style, lw=width, label=words)


def _errors(axis: Axes, runs: pd.DataFrame, forecasts: pd.DataFrame) -> None:
    axis.axhline(0, color="black", lw=0.8)
    for digest in runs["run_digest"]:
        of_run = forecasts[
            (forecasts["run_digest"] == digest) & forecasts["observed_s"].notna()
        ].dropna(subset="low_s")
        if of_run.empty:
            continue
        observed = of_run["observed_s"]
        error = of_run["error_share"]
        low, high = of_run["low_s"] / observed - 1, of_run["high_s"] / observed - 1
        axis.errorbar(
            of_run["until_occupancy"],
            100 * error,
            yerr=[100 * (error - low), 100 * (high - error)],
            fmt="o-",
            ms=4,
            capsize=3,
            lw=1.2,
            color=COLOURS["budget"],
        )
    axis.set_xlim(0, 1)
    axis.set_xlabel("forecast made at occupancy")
    axis.set_ylabel("forecast error (%)")


def _coverage(forecasts: pd.DataFrame) -> str:
    """How many asked-for forecasts hold the observed instant in their interval."""
    if forecasts.empty:
        return "No pool could fill."
    asked = forecasts[forecasts["is_asked"]].dropna(subset=["low_s", "observed_s"])
    if asked.empty:
        return "Too few frames for an interval."
    held = (asked["low_s"] <= asked["observed_s"]) & (asked["observed_s"] <= asked["high_s"])
    return f"The interval holds the observed instant in {held.sum()} of {len(asked)} runs."
