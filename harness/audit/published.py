"""Reads the authors' files as they are: run logs, admission ramps, printed window tables.

A run log is one JSON object (`.json` or `.json.gz`): `ev` = [elapsed_s, latency_ms, missed] a
frame, `total` sessions, `duration` and `budget_ms`, `ttfa` one entry a session that ever answered.
A window table is what the authors' client prints: one line for every ten seconds with a median.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.audit.names import origin, probe_retention, ramp_variant
from harness.core.errors import TelemetryError

Floats = npt.NDArray[np.float64]
_SUFFIXES = (".json.gz", ".json", ".out")
_HEADER = re.compile(r"=== SUSTAINED .*: (\d+) streams, (\d+)s, budget (\d+)ms ===")
_WINDOW = re.compile(r"\s*(\d+)-(\d+)s\s+(\d+)\s+([\d.]+)ms\s+([\d.]+)ms\s+([\d.]+)%\s*")
_END = "OVERALL"


@dataclass(frozen=True, kw_only=True)
class PublishedRun:
    """One client-side log.

    t_s, latency_ms: shape (num_samples,), in order; a sample is a frame, or a printed window's
        median.
    sample_s: None for frames, else the length of a window.
    num_missed: misses that the authors logged; first_answers: sessions that ever answered, None
        where the file does not say.
    """

    name: str
    num_sessions: int
    frame_budget_s: float
    duration_s: float
    t_s: Floats
    latency_ms: Floats
    num_missed: int
    first_answers: int | None
    sample_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class PublishedRamp:
    """One admission ramp: sessions offered, admitted and turned away, with the p99 they had."""

    name: str
    offered: int
    rate_per_s: float
    admitted: int
    rejected: int
    p99_steady_ms: float


@dataclass(frozen=True, kw_only=True)
class PublishedProbe:
    """One quality probe: in each segment of 30 s, sessions that answered, and those correctly.

    segments: (correct, answered), in order: 8 of the call, a fresh question, a recall question.
    """

    name: str
    num_sessions: int
    segments: tuple[tuple[int, int], ...]


@dataclass(frozen=True, kw_only=True)
class Published:
    """Everything that was found in a folder, each sorted by path."""

    runs: list[PublishedRun]
    ramps: list[PublishedRamp]
    probes: list[PublishedProbe]


def find_published(folder: Path) -> Published:
    """Every run, ramp and probe below `folder` that we know by its name.

    Raises: TelemetryError if there is none, or if one is cut or of another format.
    """
    if not folder.is_dir():
        raise TelemetryError(
            f"{folder} is not a directory: give the folder that holds the authors' results"
        )
    found = Published(runs=[], ramps=[], probes=[])
    for path in sorted(p for p in folder.rglob("*") if p.name.endswith(_SUFFIXES)):
        name = _stem(path)
        if path.suffix == ".out":
            if origin(name) is not None:
                found.runs.append(read_windows(path))
        elif origin(name) is not None:
            found.runs.append(read_run(path))
        elif ramp_variant(name) is not None:
            found.ramps.append(read_ramp(path))
        elif probe_retention(name) is not None:
            found.probes.append(read_probe(path))
    if not found.runs:
        raise TelemetryError(
            f"{folder} holds no published run (such as var_van96_r1_n96.json.gz): "
            "give the folder that holds the authors' results"
        )
    return found


def read_run(path: Path) -> PublishedRun:
    """One run log. Raises: TelemetryError naming the file and the line or entry at fault."""
    raw = _load(path)
    events = _field(path, raw, "ev", list)
    for index, event in enumerate(events):
        is_good = isinstance(event, list) and len(event) == 3 and all(map(_is_number, event))
        if not is_good:
            raise TelemetryError(
                f"{path}: entry {index} of ev is {json.dumps(event)[:60]}, not "
                "[elapsed_s, latency_ms, missed]: the file is of another format"
            )
    table = np.array(events, dtype=float).reshape(-1, 3)
    return PublishedRun(
        name=_stem(path),
        num_sessions=_field(path, raw, "total", int),
        frame_budget_s=_field(path, raw, "budget_ms", (int, float)) / 1e3,
        duration_s=float(_field(path, raw, "duration", (int, float))),
        t_s=table[:, 0],
        latency_ms=table[:, 1],
        num_missed=int(table[:, 2].sum()),
        first_answers=len(_field(path, raw, "ttfa", list)),
    )


def read_ramp(path: Path) -> PublishedRamp:
    """One admission ramp. Raises: TelemetryError naming the file and what it lacks."""
    raw = _load(path)
    return PublishedRamp(
        name=_stem(path),
        offered=_field(path, raw, "offered", int),
        rate_per_s=float(_field(path, raw, "rate", (int, float))),
        admitted=_field(path, raw, "admitted", int),
        rejected=_field(path, raw, "rejected", int),
        p99_steady_ms=float(_field(path, raw, "p99_steady", (int, float))),
    )


def read_probe(path: Path) -> PublishedProbe:
    """One quality probe. Raises: TelemetryError naming the file and the segment at fault."""
    raw = _load(path)
    segments = _field(path, raw, "seg_hits", list)
    for index, segment in enumerate(segments):
        is_good = isinstance(segment, list) and len(segment) == 2 and all(map(_is_number, segment))
        if not is_good or not 0 <= segment[0] <= segment[1]:
            raise TelemetryError(
                f"{path}: segment {index} of seg_hits is {json.dumps(segment)[:60]}, not "
                "[correct, answered]: the file is of another format"
            )
    return PublishedProbe(
        name=_stem(path),
        num_sessions=_field(path, raw, "n", int),
        segments=tuple((int(correct), int(answered)) for correct, answered in segments),
    )


def read_windows(path: Path) -> PublishedRun:
    """The window table that the authors' client prints.

    Raises: TelemetryError naming the file and line if the table is missing, torn or cut short.
    """
    lines = _text(path).splitlines()
    start = next((i for i, line in enumerate(lines) if _HEADER.match(line)), None)
    if start is None:
        raise TelemetryError(f"{path}: no line '=== SUSTAINED ...: N streams, ...' in it")
    head = _HEADER.match(lines[start])
    assert head is not None
    rows: list[tuple[float, ...]] = []
    # The line after the header names the columns.
    for number, line in enumerate(lines[start + 2 :], start=start + 3):
        if line.lstrip().startswith(_END):
            break
        window = _WINDOW.fullmatch(line)
        if window is None:
            raise TelemetryError(
                f"{path}, line {number}: {line.strip()[:60]!r} is not a window "
                "(0-10s TICKS P50ms P99ms MISS%): the file is cut or of another format"
            )
        rows.append(tuple(float(cell) for cell in window.groups()))
    else:
        raise TelemetryError(
            f"{path}, line {len(lines)}: the table ends without its {_END} line: the file is cut"
        )
    if not rows:
        raise TelemetryError(f"{path}, line {start + 3}: the window table is empty")
    start_s, stop_s, frames, median_ms, _, missed = np.array(rows).T
    return PublishedRun(
        name=_stem(path),
        num_sessions=int(head[1]),
        frame_budget_s=int(head[3]) / 1e3,
        duration_s=float(head[2]),
        t_s=start_s,
        latency_ms=median_ms,
        num_missed=round(float((missed / 100 * frames).sum())),
        first_answers=None,
        sample_s=float(stop_s[0] - start_s[0]),
    )


def _stem(path: Path) -> str:
    return next(path.name.removesuffix(s) for s in _SUFFIXES if path.name.endswith(s))


def _text(path: Path) -> str:
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rt", encoding="utf-8") as source:
                return source.read()
        return path.read_text(encoding="utf-8")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TelemetryError(f"{path}: cut or not gzip ({error}): fetch it again") from error
    except (OSError, UnicodeDecodeError) as error:
        raise TelemetryError(f"{path}: cannot be read: {error}") from error


def _load(path: Path) -> dict[str, Any]:
    try:
        raw = json.loads(_text(path))
    except json.JSONDecodeError as error:
        raise TelemetryError(
            f"{path}, line {error.lineno}, column {error.colno}: {error.msg}: "
            "the file is cut or not JSON"
        ) from error
    if not isinstance(raw, dict):
        raise TelemetryError(f"{path}, line 1: holds a {type(raw).__name__}, not an object")
    return raw


def _field(path: Path, raw: dict[str, Any], key: str, kind: type | tuple[type, ...]) -> Any:
    value = raw.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        found = "is missing" if key not in raw else f"is a {type(value).__name__}"
        raise TelemetryError(f"{path}: {key} {found}: this is not a published run of that name")
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
