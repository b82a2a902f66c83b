"""One look for all figures, and the caption that says what a reader's eyes rest on."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from harness.core.files import replacing

COLOURS = {
    "answer": "#2a6f97",
    "dead": "#c1121f",
    "tick": "#8d99ae",
    "budget": "#e09f3e",
    "pool": "#335c67",
    "running": "#5fa8d3",
    "waiting": "#bc4749",
    "silence": "#f2cfc9",
}

EVIDENCE = {
    "live-tiny": "live vLLM on CPU, tiny random weights of the true architecture, real speech",
    "live-full": "live vLLM on GPU, real weights, real speech",
    "live-smollm2": "live vLLM on CPU, real weights of SmolLM2-135M in bf16, real texts",
    "reference-smollm2": "the same weights in float32 under an explicit mask, transformers",
    "simulated": "vLLM's own scheduler in virtual time, step times from conf/hardware/, no GPU",
    "audited": "the client logs that the authors published, judged by this project",
    "paper": "published by the paper's authors",
    "none": "no engine: the harness's own echo",
}


def use_house_style() -> None:
    """Set seaborn's theme; a figure module calls this before it draws."""
    mpl.use("Agg")
    sns.set_theme(context="paper", style="ticks", font_scale=1.05)
    mpl.rcParams.update({"figure.dpi": 150, "savefig.bbox": "tight", "legend.frameon": False})


def add_caption(figure: Figure, text: str, evidence: Iterable[str]) -> None:
    """Write under the figure what it shows and on what evidence."""
    classes = "; ".join(f"{name}: {EVIDENCE.get(name, name)}" for name in dict.fromkeys(evidence))
    wrapped = textwrap.fill(f"{text} Evidence: {classes}.", width=130)
    figure.text(0.01, -0.01, wrapped, ha="left", va="top", fontsize=8, color="#444444")


def title_by_offer(figure: Figure, run: pd.Series) -> None:
    """Say above the figure what was offered: model, number of calls, frame budget."""
    figure.suptitle(
        f"{run['model']}, N = {run['num_sessions']}, B = {run['frame_budget_s']:g} s", y=0.99
    )


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write the figure as PDF and PNG, each atomically."""
    paths = [stem.with_name(f"{stem.name}{suffix}") for suffix in (".pdf", ".png")]
    for path in paths:
        # A fixed creation date, so that equal tables give equal files.
        metadata = {"CreationDate": None} if path.suffix == ".pdf" else {"Software": None}
        with replacing(path) as partial:
            figure.savefig(partial, format=path.suffix[1:], metadata=metadata)
    return paths
