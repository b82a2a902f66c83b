"""Late answers and the health of late speech, one row a variant.

Paper: Table 2, Fig 8 (free-running); 5.4 (turns).
"""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib import pyplot as plt

from harness.figures.style import COLOURS, add_caption, save, use_house_style

_PANELS = (
    ("late_answered", "right answers"),
    ("recalled", "first question recalled"),
    ("late_repeated", "repeated 4-grams"),
    ("late_distinct_2", "distinct 2-grams"),
    ("late_entropy_nats", "next-token entropy (nats)"),
)
_CAPTION = (
    "Turns asked once a session is older than its window: unbounded (black, judged on the same "
    "turns), window only (red), window and sinks (blue; S in whole blocks of 32). Bars: exact 95 % "
    "interval as if turns were independent; crosses: share of right answers before that age. "
    "Recalled: share of sessions that name their first question at their end. "
    "Repeated: share of 4-grams that the session has said before."
)


def draw(shares: pd.DataFrame, stem: Path) -> list[Path]:
    """Draw from the table of shares (harness/analysis/conversations.py); returns the files."""
    use_house_style()
    rows = shares.sort_values(["window_tokens", "is_bounded", "sink_tokens"]).reset_index(drop=True)
    figure, axes = plt.subplots(
        1, len(_PANELS), figsize=(12.5, 0.42 * len(rows) + 1.1), sharey=True, squeeze=False
    )
    colours = [_colour(row) for row in rows.to_dict(orient="records")]
    for axis, (column, label) in zip(axes[0], _PANELS, strict=True):
        axis.scatter(rows[column], rows.index, color=colours, s=32, zorder=3)
        axis.set_xlabel(label)
        axis.grid(axis="x", lw=0.4, color=COLOURS["tick"], alpha=0.5)
    first = axes[0, 0]
    first.hlines(rows.index, rows["low"], rows["high"], color=colours, lw=1.4)
    first.scatter(rows["early_answered"], rows.index, marker="x", s=24, color=COLOURS["tick"])
    for axis in axes[0, :2]:
        axis.set_xlim(-0.03, 1.03)
    first.set_yticks(rows.index, [_name(row) for row in rows.to_dict(orient="records")])
    first.invert_yaxis()
    figure.tight_layout()
    add_caption(figure, _CAPTION, rows["evidence"])
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def _colour(row: dict[Hashable, Any]) -> str:
    if not row["is_bounded"]:
        return "#333333"
    return COLOURS["answer"] if row["sink_tokens"] else COLOURS["dead"]


def _name(row: dict[Hashable, Any]) -> str:
    if not row["is_bounded"]:
        return f"unbounded (beside W={row['window_tokens']:.0f})"
    return f"W={row['window_tokens']:.0f}, S={row['sink_tokens']:.0f}"
