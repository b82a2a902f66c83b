"""Every run of a wall matrix as a strip in time, coloured by what its callers heard.

Paper: Fig 4b, Fig 5, Table 1.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from harness.diagnosis.verdicts import Verdict
from harness.figures.style import COLOURS, add_caption, save, use_house_style

_CAPTION = (
    "Each strip is one run of fresh calls. Blue: every call is answered; orange: some calls have "
    "gone silent; red: nobody is answered any more. k/n: collapsed runs, with the exact 95 % "
    "interval; 'all dead': those in which nobody was left; 'wall': runs that the paper's rule "
    "counts (median call dead late in the run). Misses at the deadline: median of the runs. Runs "
    "that failed a self-check (the machine was busy) are marked invalid and not counted."
)
# Offer, variant, number of calls.
Panel = tuple[str, str, int]


def draw(runs: pd.DataFrame, shares: pd.DataFrame, stem: Path) -> list[Path]:
    """Draw from the tables of harness/experiments/wall_matrix.py; returns the files."""
    use_house_style()
    panels = _panels(runs)
    most = int(runs.groupby(["offer", "num_sessions", "variant"]).size().max())
    figure, axes = plt.subplots(
        len(panels),
        len(panels[0]),
        figsize=(5.0 * len(panels[0]), (1.6 + 0.14 * most) * len(panels)),
        sharex="col",
        squeeze=False,
    )
    for row, of_row in zip(axes, panels, strict=True):
        for axis, panel in zip(row, of_row, strict=True):
            chosen, found = _of(runs, panel), _of(shares, panel)
            if chosen.empty:
                axis.set_axis_off()
                continue
            _strips(axis, chosen)
            counts = "all runs invalid" if found.empty else _counts(found.iloc[0])
            offer, variant, size = panel
            axis.set_title(f"{variant}, N = {size}, {offer}\n{counts}", fontsize=8)
            axis.set_ylabel(f"run ({_label_column(chosen)})", fontsize=8)
    for axis in axes[-1]:
        axis.set_xlabel("elapsed time (s)")
    handles = [
        Patch(color=COLOURS["answer"], label="all calls answered"),
        Patch(color=COLOURS["budget"], label="some calls silent"),
        Patch(color=COLOURS["dead"], label="nobody answered"),
    ]
    figure.tight_layout()
    figure.legend(handles=handles, loc="lower center", ncol=3, bbox_to_anchor=(0.5, 1.0))
    add_caption(figure, _CAPTION, runs["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _panels(runs: pd.DataFrame) -> list[list[Panel]]:
    """Rows of panels: calls from left to right if every offer has the same, else the offers."""
    variants = list(dict.fromkeys(runs["variant"]))
    offers = list(dict.fromkeys(zip(runs["offer"], runs["num_sessions"], strict=True)))
    names = list(dict.fromkeys(offer for offer, _ in offers))
    sizes = sorted({size for _, size in offers})
    if len(offers) == len(names) * len(sizes):
        return [[(name, kept, size) for size in sizes] for name in names for kept in variants]
    return [[(name, kept, size) for name, size in offers] for kept in variants]


def _of(table: pd.DataFrame, panel: Panel) -> pd.DataFrame:
    offer, variant, size = panel
    return table[
        (table["offer"] == offer) & (table["variant"] == variant) & (table["num_sessions"] == size)
    ]


def _counts(found: pd.Series) -> str:
    return (
        f"{found['collapsed']}/{found['runs']} collapsed [{found['collapsed_low']:.2f}, "
        f"{found['collapsed_high']:.2f}], {found['stalled']} all dead, wall "
        f"{found['walled']}/{found['runs']}, misses {found['misses_median']:.1%}"
    )


def _label_column(runs: pd.DataFrame) -> str:
    """What tells the runs of a panel apart."""
    return "seed" if runs["seed"].nunique() > 1 else "repetition"


def _strips(axis: Axes, runs: pd.DataFrame) -> None:
    for place, run in enumerate(runs.to_dict(orient="records")):
        end_s = run["duration_s"]
        onset_s = run["silence_onset_s"]
        silent_s = end_s if pd.isna(onset_s) else onset_s
        last_s = min(end_s, run["last_token_s"]) if pd.notna(run["last_token_s"]) else 0.0
        # Tokens that come until the very end mean that somebody is still answered.
        dead_s = last_s if end_s - last_s > 2 * run["frame_budget_s"] else end_s
        parts = (
            (0.0, min(silent_s, dead_s), COLOURS["answer"]),
            (min(silent_s, dead_s), dead_s, COLOURS["budget"]),
            (dead_s, end_s, COLOURS["dead"]),
        )
        for start_s, stop_s, colour in parts:
            axis.barh(place, stop_s - start_s, left=start_s, height=0.8, color=colour, lw=0)
    labels = [str(label) for label in runs[_label_column(runs)]]
    for place, verdict in enumerate(runs["verdict"]):
        if verdict == Verdict.invalid.name:
            axis.text(
                runs["duration_s"].max() / 2,
                place,
                "invalid",
                ha="center",
                va="center",
                fontsize=5.5,
            )
    axis.set_yticks(range(len(runs)), labels, fontsize=6)
    axis.set_xlim(0, float(runs["duration_s"].max()))
    axis.invert_yaxis()
