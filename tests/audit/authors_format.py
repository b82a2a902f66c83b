"""Small hand-made files in the format of the published logs, and runs of known fates."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

B_S = 2.0
LIMIT_MS = 1601.0
TICKS = 150


def served(ticks: int = TICKS) -> list[float]:
    """Latency that grows from 2.5 ms with age, as of a run in which the engine works."""
    wobble = 0.3 * np.sin(np.arange(ticks))
    return [float(2.5 + 4.0 * k / TICKS + wobble[k]) for k in range(ticks)]


def idle(ticks: int) -> list[float]:
    """Latency of ticks in which the engine does nothing."""
    return [float(1.2 + 0.2 * np.sin(2 * k)) for k in range(ticks)]


def walled(stops: int, onset: int) -> list[float]:
    """Served, a drained backlog from tick `stops`, and the limit from tick `onset` on."""
    limit = [LIMIT_MS + k * 0.001 for k in range(TICKS - onset)]
    return [*served(stops), *idle(onset - stops), *limit]


def gone_quiet(stops: int) -> list[float]:
    """Served until tick `stops`, then idle to the end."""
    return [*served(stops), *idle(TICKS - stops)]


def log(
    latency_ms: Sequence[float], *, sessions: int = 4, answered: int | None = None, **more: Any
) -> dict[str, Any]:
    """A run log: every session logs the tick's latency, one after the other."""
    events = [
        [k * B_S + 0.5 + s * 1e-4, value, 0]
        for k, value in enumerate(latency_ms)
        for s in range(sessions)
    ]
    head = {"total": sessions, "duration": TICKS * B_S, "budget_ms": B_S * 1e3}
    first_answers = [300.0] * (sessions if answered is None else answered)
    return {**head, "ev": events, "ttfa": first_answers, **more}


def write_log(folder: Path, name: str, content: dict[str, Any]) -> Path:
    """Write `<name>.json.gz`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json.gz"
    with gzip.open(path, "wt") as sink:
        json.dump(content, sink)
    return path


def window_table(medians_ms: Sequence[float], *, sessions: int = 4) -> str:
    """What the client prints: a header, a line for every 10 s, a closing line."""
    lines = [
        "[audio] clips",
        f"=== SUSTAINED continuous full-duplex: {sessions} streams, "
        f"{10 * len(medians_ms)}s, budget 1000ms ===",
        "        window   ticks   lat p50   lat p99    miss",
    ]
    for k, median in enumerate(medians_ms):
        window = f"{10 * k}-{10 * (k + 1)}s"
        lines.append(f"{window:>14} {40:7} {median:8.0f}ms {median:8.0f}ms   0.0%")
    return "\n".join([*lines, "  OVERALL: ticks=1 lat p50=5", ""])
