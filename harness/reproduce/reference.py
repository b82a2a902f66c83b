"""results/reference/: what a whole run left, kept in the repository to compare new runs with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from harness.analysis.tables import read_tables
from harness.core.errors import TelemetryError
from harness.core.files import replacing, write_json
from harness.figures.files import figure_files
from harness.reproduce.made import Made, is_made, read_stamp
from harness.reproduce.registry import Artifact

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
_LEDGER = ("claims.json", "CLAIMS.md")
_ORIGIN = "provenance.json"


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The kept summary tables by artifact id, and the kept ledger of claims."""

    summaries: dict[str, pd.DataFrame]
    claims: list[dict[str, Any]]


def keep(artifacts: Sequence[Artifact], results: Path, reference: Path = REFERENCE) -> list[Path]:
    """Copy summary table, figure and origin of each artifact, and the claims; returns the paths.

    An artifact that is not up to date is no reference, and what is kept of it stays.
    Raises: TelemetryError if none is, or a file cannot be read or written.
    """
    origins: dict[str, Any] = {}
    path = reference / _ORIGIN
    if path.exists():
        origins = json.loads(path.read_text())
    written = []
    for artifact in artifacts:
        made = read_stamp(artifact, results)
        if made is None or not is_made(artifact, results):
            continue
        origins[artifact.id] = _origin(artifact, made, results)
        table = _table_path(reference, artifact.id)
        with replacing(table) as partial:
            read_tables(results, artifact.id)[""].to_csv(partial, index=False)
        written.append(table)
        for figure in figure_files(results, artifact.id):
            written.append(Path(shutil.copyfile(figure, reference / figure.name)))
    if not written:
        raise TelemetryError(
            "no artifact is up to date, so there is nothing to keep: run `make reproduce-all` first"
        )
    write_json(path, dict(sorted(origins.items())))
    for name in _LEDGER:
        shutil.copyfile(results / name, reference / name)
    return [*written, path, *(reference / name for name in _LEDGER)]


def read_reference(reference: Path = REFERENCE) -> Reference:
    """Read what is kept. Raises: TelemetryError if nothing is."""
    tables = {path.stem: pd.read_csv(path) for path in (reference / "tables").glob("*.csv")}
    if not tables:
        raise TelemetryError(f"{reference} holds no tables: there is nothing to compare with")
    return Reference(summaries=tables, claims=json.loads((reference / "claims.json").read_text()))


def _origin(artifact: Artifact, made: Made, results: Path) -> dict[str, Any]:
    """Where it came from: every run by name; commits, hosts and versions as far as they differ."""
    runs = [json.loads((results / run / "provenance.json").read_text()) for run in made.runs]
    summary = read_tables(results, artifact.id)[""]
    return {
        "command": artifact.command,
        "evidence": list(dict.fromkeys(summary["evidence"])),
        "made_at": made.made_at,
        "seconds": round(made.seconds, 1),
        "seeds": sorted({run["config"]["seed"] for run in runs}),
        "commits": _differing(runs, "git_commit"),
        "has_uncommitted_changes": any(run["git_dirty"] for run in runs),
        "python": _differing(runs, "python"),
        "packages": _differing(runs, "packages"),
        "num_cpus": _differing(runs, "num_cpus"),
        "memory_bytes": _differing(runs, "memory_bytes"),
        "platform": _differing(runs, "platform"),
        "runs": list(made.runs),
    }


def _differing(runs: Sequence[dict[str, Any]], field: str) -> list[Any]:
    values: list[Any] = []
    for run in runs:
        if run[field] not in values:
            values.append(run[field])
    return values


def _table_path(reference: Path, artifact: str) -> Path:
    return reference / "tables" / f"{artifact}.csv"
