"""Run directories as the report reads them: verdict, origin, frames; no engine behind it."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from harness.analysis.runs import variant
from harness.core.errors import HarnessWarning, TelemetryError
from harness.diagnosis.verdicts import Verdict
from harness.telemetry import schemas


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """One run directory.

    summary: verdict.json; origin: provenance.json, with the whole configuration under `config`.
    is_finished: went to its end; an unfinished run is shown as such and tried again by its command.
    """

    directory: Path
    summary: dict[str, Any]
    origin: dict[str, Any]
    is_finished: bool

    @property
    def digest(self) -> str:
        """What the run is named after."""
        return self.directory.name

    @property
    def label(self) -> str:
        """Model, variant, N and seed, for people."""
        of = self.summary
        return f"{of['model']}, {variant(of)}, N = {of['num_sessions']}, seed {self.seed}"

    @property
    def seed(self) -> int:
        """Seed of the run's schedule."""
        return int(self.origin["config"]["seed"])

    @property
    def verdict(self) -> Verdict:
        """What became of the run."""
        return Verdict[self.summary["verdict"]]

    @property
    def command(self) -> str:
        """What was typed to get it."""
        return " ".join(["python -m harness", *self.origin["command"][1:]])

    @property
    def host(self) -> str:
        """Where it ran: processors, memory, system."""
        of = self.origin
        memory_gb = of["memory_bytes"] / 1e9
        return f"{of['num_cpus']} x {of['cpu']}, {memory_gb:.0f} GB, {of['platform']}"

    @property
    def versions(self) -> str:
        """Commit, Python and the packages that the result depends on."""
        of = self.origin
        dirty = " with changes" if of["git_dirty"] else ""
        packages = ", ".join(f"{name} {version}" for name, version in of["packages"].items())
        commit = str(of["git_commit"] or "unknown")[:12]
        return f"commit {commit}{dirty}, Python {of['python']}, {packages}"

    def frames(self) -> pd.DataFrame | None:
        """The frame table; None if the engine never came up. Raises: TelemetryError if torn."""
        is_recorded = (self.directory / f"{schemas.FRAMES.name}.parquet").exists()
        return schemas.FRAMES.read(self.directory) if is_recorded else None

    def schedule(self) -> pd.DataFrame:
        """What was offered. Raises: TelemetryError if missing or torn."""
        return schemas.SCHEDULE.read(self.directory)


def recorded_runs(results: Path) -> list[RecordedRun]:
    """Every run directory with a verdict, by experiment, model, variant, N and seed.

    Runs whose tables are of another version are left out, with a warning.
    Raises: TelemetryError naming a file that cannot be read.
    """
    runs, num_outdated = [], 0
    for path in sorted(results.glob("runs/*/*/verdict.json")):
        if schemas.FRAMES.is_outdated(path.parent):
            num_outdated += 1
            continue
        runs.append(
            RecordedRun(
                directory=path.parent,
                summary=_read(path),
                origin=_read(path.with_name("provenance.json")),
                is_finished=path.with_name("DONE").exists(),
            )
        )

    if num_outdated:
        warnings.warn(
            f"{num_outdated} runs in {results / 'runs'} are of another version and left out: "
            "remove them, or run their experiments again",
            HarnessWarning,
            stacklevel=2,
        )

    def place(run: RecordedRun) -> tuple[str, str, str, int, int]:
        of = run.summary
        return of["experiment"], of["model"], variant(of), of["num_sessions"], run.seed

    return sorted(runs, key=place)


def _read(path: Path) -> dict[str, Any]:
    try:
        loaded: dict[str, Any] = json.loads(path.read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise TelemetryError(
            f"{path} cannot be read ({error}): remove {path.parent} and run its experiment again"
        ) from error
    return loaded
