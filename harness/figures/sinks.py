"""Perplexity of told texts by age, one panel a window, and what is left of the loss by sinks kept.

Paper: Fig 8 (the sinks are load-bearing), in teacher-forced form.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, ScalarFormatter

from harness.figures.style import COLOURS, add_caption, save, use_house_style

_LIVE = "live-smollm2"
_LABELS = {
    "all": ("unbounded", "#333333", "-"),
    "0": ("window only", COLOURS["dead"], "-"),
    "32": ("window + 32 sinks", COLOURS["answer"], "-"),
    "64": ("window + 64 sinks", COLOURS["running"], "--"),
}
_CAPTION = (
    "Perplexity of told texts, mean over texts; bands and bars: 95 % bootstrap over texts. Age is "
    "a token's position over W: from the dotted line on, the window no longer holds the start. "
    "Bottom: perplexity over unbounded's on the same tokens, once past that line. Live vLLM pins "
    "whole blocks of 32; squares pin exactly S tokens."
)
_ATTENTION_CAPTION = (
    " Right: where attention goes under the full mask, 256 tokens of each text, mean over heads "
    "and the later half of the queries."
)


def draw(
    by_age: pd.DataFrame, late: pd.DataFrame, attention: pd.DataFrame, stem: Path
) -> list[Path]:
    """Draw from the tables of harness/experiments/sinks.py; returns the files."""
    use_house_style()
    live = by_age[by_age["evidence"] == _LIVE]
    windows = sorted(live.loc[live["kept"] != "all", "window_tokens"].unique())
    columns = max(2, len(windows))
    figure = plt.figure(figsize=(3.1 * columns, 5.6))
    # Twelfths, so that any number of windows from two to four stands above three panels.
    grid = figure.add_gridspec(2, 12, height_ratios=(1.15, 1))
    width = 12 // columns
    first: Axes | None = None
    for column, window in enumerate(windows):
        axis = figure.add_subplot(grid[0, width * column : width * (column + 1)], sharey=first)
        _by_age(axis, live[live["window_tokens"] == window])
        axis.set_title(f"W = {window:.0f}", fontweight="bold")
        if first is None:
            first = axis
            axis.set_ylabel("perplexity")
        else:
            axis.tick_params(labelleft=False)
    assert first is not None
    handles, labels = _handles(figure)
    figure.legend(handles, labels, loc="upper center", ncol=4, bbox_to_anchor=(0.5, 1.04))
    _by_window(figure.add_subplot(grid[1, :4]), late)
    _by_sinks(figure.add_subplot(grid[1, 4:8]), late)
    if len(attention):
        _attention(figure.add_subplot(grid[1, 8:]), attention)
    figure.tight_layout()
    caption = _CAPTION + (_ATTENTION_CAPTION if len(attention) else "")
    add_caption(figure, caption, [*live["evidence"], *late["evidence"]])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _by_age(axis: Axes, rows: pd.DataFrame) -> None:
    for kept, line in rows.groupby("kept"):
        label, colour, style = _LABELS.get(str(kept), (f"window + {kept} sinks", "#9c6644", ":"))
        axis.plot(line["age"], line["perplexity"], color=colour, ls=style, lw=1.6, label=label)
        axis.fill_between(line["age"], line["low"], line["high"], color=colour, alpha=0.12, lw=0)
    axis.axvline(1, color=COLOURS["tick"], ls=":", lw=1)
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(ScalarFormatter())
    axis.yaxis.set_minor_locator(NullLocator())
    axis.set_yticks([10, 20, 40, 80, 160, 320])
    axis.set_ylim(8, 400)
    axis.set_xlabel("age (units of W)")


def _handles(figure: Figure) -> tuple[list[Artist], list[str]]:
    found: dict[str, Artist] = {}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(str(label), handle)
    ordered = [label for label, *_ in _LABELS.values() if label in found]
    return [found[label] for label in ordered], ordered


def _by_window(axis: Axes, late: pd.DataFrame) -> None:
    live = late[(late["evidence"] == _LIVE) & late["kept_sink_tokens"].isin([0, 32])]
    windows = sorted(live["window_tokens"].unique())
    for shift, (sinks, rows) in zip((-0.08, 0.08), live.groupby("kept_sink_tokens"), strict=False):
        label, colour, _ = _LABELS[f"{sinks:.0f}"]
        rows = rows.sort_values("window_tokens")
        places = [windows.index(window) + shift for window in rows["window_tokens"]]
        _bars(axis, places, rows, colour, "o", label)
    axis.set_xticks(range(len(windows)), [f"{window:.0f}" for window in windows])
    axis.set_xlabel("window W (tokens)")
    axis.set_ylabel("late perplexity\nover unbounded's")
    axis.axhline(1, color="#333333", lw=1)


def _by_sinks(axis: Axes, late: pd.DataFrame) -> None:
    """At the window that was told with the most numbers of sinks."""
    window = late.groupby("window_tokens")["kept_sink_tokens"].count().idxmax()
    rows = late[late["window_tokens"] == window]
    sinks = sorted(rows["kept_sink_tokens"].unique())
    styles = ((_LIVE, "o", COLOURS["answer"], -0.08), ("reference", "s", "#9c6644", 0.08))
    for name, marker, colour, shift in styles:
        part = rows[rows["evidence"].str.startswith(name)].sort_values("kept_sink_tokens")
        if part.empty:
            continue
        places = [sinks.index(value) + shift for value in part["kept_sink_tokens"]]
        label = "live vLLM, bf16" if name == _LIVE else "reference, float32, exact S"
        _bars(axis, places, part, colour, marker, label)
    axis.set_xticks(range(len(sinks)), [f"{value:.0f}" for value in sinks])
    axis.set_xlabel(f"sinks kept (tokens), W = {window:.0f}")
    axis.axhline(1, color="#333333", lw=1)
    axis.legend(fontsize=8)


def _attention(axis: Axes, attention: pd.DataFrame) -> None:
    shown = ((1, "token 0", "#9c6644"), (32, "first 32 tokens", COLOURS["answer"]))
    for first, label, colour in shown:
        rows = attention[attention["first_tokens"] == first]
        axis.plot(rows["layer"], rows["mass"], color=colour, lw=1.6, label=label)
    axis.set_ylim(0, 1)
    axis.set_xlabel("layer")
    axis.set_ylabel("share of attention")
    axis.legend(fontsize=8)


def _bars(
    axis: Axes, places: list[float], rows: pd.DataFrame, colour: str, marker: str, label: str
) -> None:
    below = rows["ratio"] - rows["ratio_low"]
    above = rows["ratio_high"] - rows["ratio"]
    axis.errorbar(
        places,
        rows["ratio"],
        yerr=[below, above],
        fmt=marker,
        color=colour,
        ms=5,
        capsize=3,
        lw=1.2,
        label=label,
    )
