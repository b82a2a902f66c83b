"""What an artifact was made of (results/tables/<id>.made.json), so that nothing is made twice."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import harness
from harness.analysis.tables import read_tables, table_path
from harness.audit.derived import SHIPPED
from harness.composition import CONFIG_DIR
from harness.core.digests import digest
from harness.core.files import write_json
from harness.experiments.runner import DONE
from harness.figures.files import figure_files
from harness.reproduce.registry import Artifact
from harness.telemetry.provenance import package_versions

_CODE = Path(harness.__file__).parent
_AUDIO = CONFIG_DIR.parent / "audio_corpora"
# Of these only what `_key` takes from the row decides anything.
_REGISTRIES = ("artifacts.yaml", "claims.yaml", "comparison.yaml")
_SOURCES = ((_CODE, "*.py"), (CONFIG_DIR, "*.yaml"), (_AUDIO, "*.yaml"), (SHIPPED, "*"))


@dataclass(frozen=True, kw_only=True)
class Made:
    """The stamp of an artifact whose runs all are results.

    key: of the sources, the packages and the registry's row it was made from.
    seconds: that making it took, runs included; after an interruption, what was left undone.
    runs: the run directories its tables were read from, relative to the results.
    """

    key: str
    made_at: str
    seconds: float
    runs: tuple[str, ...]


@functools.cache
def source_digest() -> str:
    """Digest of everything a result follows from besides the row: code, conf, audio, packages."""
    content = hashlib.sha256()
    for folder, pattern in _SOURCES:
        for path in sorted(folder.rglob(pattern)):
            if path.is_file() and path.name not in _REGISTRIES:
                content.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest([content.hexdigest(), package_versions()])


def stamp(artifact: Artifact, results: Path, *, seconds: float) -> None:
    """Say that the artifact's tables and figure are made. Raises: TelemetryError."""
    summary = read_tables(results, artifact.id)[""]
    runs: list[str] = []
    if "run_digest" in summary:
        named = summary[["experiment", "run_digest"]].dropna().drop_duplicates()
        runs = [f"runs/{row.experiment}/{row.run_digest}" for row in named.itertuples()]
    earlier = read_stamp(artifact, results)
    if earlier is not None and earlier.runs == tuple(runs):
        # Tables made again from the same runs say nothing of what the runs took.
        seconds = max(seconds, earlier.seconds)
    made = Made(
        key=_key(artifact),
        made_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        seconds=seconds,
        runs=tuple(runs),
    )
    write_json(_path(artifact, results), dataclasses.asdict(made))


def read_stamp(artifact: Artifact, results: Path) -> Made | None:
    """The stamp, of whatever version; None if there is none that can be read."""
    try:
        fields = json.loads(_path(artifact, results).read_text())
        return Made(**{**fields, "runs": tuple(fields["runs"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_made(artifact: Artifact, results: Path) -> bool:
    """Whether tables and figure are there, of these sources, and every run behind them too."""
    made = read_stamp(artifact, results)
    return (
        made is not None
        and made.key == _key(artifact)
        and table_path(results, artifact.id, "").exists()
        and bool(figure_files(results, artifact.id))
        and all((results / run / DONE).exists() for run in made.runs)
    )


def _key(artifact: Artifact) -> str:
    """Of what decides tables and figure; how the row is worded or judged is none of it."""
    return digest(
        [source_digest(), artifact.id, artifact.experiment, artifact.report, artifact.overrides]
    )


def _path(artifact: Artifact, results: Path) -> Path:
    return results / "tables" / f"{artifact.id}.made.json"


def made_since(page: Path, artifacts: Sequence[Artifact], results: Path) -> bool:
    """Whether a file is older than what it was to show: the claims, or any artifact's stamp."""
    if not page.exists():
        return True
    shown = [results / "claims.json", *(_path(artifact, results) for artifact in artifacts)]
    if not all(is_made(artifact, results) for artifact in artifacts):
        return True
    return any(path.stat().st_mtime > page.stat().st_mtime for path in shown)
