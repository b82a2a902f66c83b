"""One call over five minutes: what its gateway logs beside what it hears, both variants.

Paper: Fig 1.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from harness.figures.panels import (
    FLOOR_S,
    colour_of,
    latency_axis,
    never_answered,
    never_level_s,
    shade_silence,
    side_legend,
)
from harness.figures.style import COLOURS, add_caption, save, use_house_style

_CAPTION = (
    "One of the calls, frame by frame: {which}. Left: what the paper's gateway would log, the wait "
    "for any buffered token, at most 0.8 B (below 1 ms: drawn at 1 ms). Right: release to last "
    "token of the same frames (dots: answers differ in length; crosses were never answered), and "
    "the median over all calls that were answered (line). Shaded: this call is silent."
)


def draw(runs: pd.DataFrame, frames: pd.DataFrame, stem: Path) -> list[Path]:
    """Draw from the tables of harness/experiments/one_call.py; returns the files."""
    use_house_style()
    shown = runs[runs["run_digest"].isin(frames["run_digest"].unique())]
    call, which = typical_call(frames)
    never_s = never_level_s(frames[frames["session_id"] == call], shown["frame_budget_s"].iloc[0])
    figure, (gateway, heard) = plt.subplots(1, 2, figsize=(10.4, 3.4), sharex=True, sharey=True)
    for run in shown.to_dict(orient="records"):
        of_run = frames[frames["run_digest"] == run["run_digest"]]
        of_call = of_run[of_run["session_id"] == call].sort_values("frame")
        colour = colour_of(run["retention_kind"])
        width, size = (2.6, 16) if run["retention_kind"] == "unbounded" else (1.4, 6)
        gateway.step(
            of_call["release_s"],
            of_call["tick_wait_s"].clip(lower=FLOOR_S),
            where="post",
            color=colour,
            lw=width,
            label=run["variant"],
        )
        heard.scatter(of_call["release_s"], of_call["latency_s"], color=colour, s=size, alpha=0.45)
        all_calls = of_run.groupby("frame").agg(t=("release_s", "min"), s=("latency_s", "median"))
        heard.plot(all_calls["t"], all_calls["s"], color=colour, lw=width, label=run["variant"])
        never_answered(heard, of_call, never_s, COLOURS["dead"])
        for axis in (gateway, heard):
            shade_silence(axis, of_call)
    _finish(gateway, heard, shown, never_s)
    figure.tight_layout()
    add_caption(figure, _CAPTION.format(which=which), shown["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def typical_call(frames: pd.DataFrame) -> tuple[int, str]:
    """The call whose silence begins in the middle of all that begin; the first if none does."""
    onsets = frames[frames["silent"]].groupby("session_id")["release_s"].min().sort_values()
    num_calls = frames["session_id"].nunique()
    if onsets.empty:
        return int(frames["session_id"].min()), f"the first of {num_calls}, none of which is silent"
    call = int(onsets.index[len(onsets) // 2])
    which = (
        f"call {call}, the one in the middle of the {len(onsets)} of {num_calls} that go silent, "
        f"from {onsets.iloc[0]:.0f} s to {onsets.iloc[-1]:.0f} s"
    )
    return call, which


def _finish(gateway: Axes, heard: Axes, runs: pd.DataFrame, never_s: float) -> None:
    first = runs.iloc[0]
    budget_s = first["frame_budget_s"]
    for axis in (gateway, heard):
        latency_axis(axis, budget_s, never_s, label=f"deadline, B = {budget_s:g} s")
        axis.set_xlabel("elapsed time (s)")
    gateway.set_ylabel("frame latency (s)")
    gateway.set_title("what the gateway logs", fontweight="bold")
    heard.set_title("release to last token", fontweight="bold")
    side_legend(heard, (gateway, heard), x=1.02)
    verdicts = "; ".join(f"{run.variant}: {run.verdict}" for run in runs.itertuples())
    gateway.figure.suptitle(
        f"{first['model']}, one of N = {first['num_sessions']} calls ({verdicts})", y=1.0
    )
