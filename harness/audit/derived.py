"""The derived table that ships in results/paper/: facts of every published run, no copied file.

audit_runs.csv      one row a run (facts.py)
audit_medians.csv   15 s medians of every run
audit_ramps.csv     one row an admission ramp
audit_probes.csv    one row a segment of a quality probe
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from harness.audit.facts import facts_table, run_medians
from harness.audit.names import origin, probe_retention, ramp_variant
from harness.audit.published import PublishedProbe, find_published
from harness.core.errors import TelemetryError
from harness.core.files import write_text

SHIPPED = Path(__file__).resolve().parents[2] / "results" / "paper"
_FILES = {part: f"audit_{part}.csv" for part in ("runs", "medians", "ramps", "probes")}


@dataclass(frozen=True, kw_only=True)
class Derived:
    """Facts of all runs, their medians over time, ramps and probes; columns as in the files."""

    runs: pd.DataFrame
    medians: pd.DataFrame
    ramps: pd.DataFrame
    probes: pd.DataFrame


def derive(folder: Path) -> Derived:
    """Read the authors' files below `folder`. Raises: TelemetryError naming file and line."""
    found = find_published(folder)
    ramps = [{**asdict(ramp), "variant": ramp_variant(ramp.name)} for ramp in found.ramps]
    return Derived(
        runs=facts_table(found.runs),
        medians=pd.concat([run_medians(run) for run in found.runs], ignore_index=True),
        ramps=pd.DataFrame(ramps),
        probes=pd.DataFrame([row for probe in found.probes for row in _segments(probe)]),
    )


def _segments(probe: PublishedProbe) -> list[dict[str, Any]]:
    window_tokens, sink_tokens = probe_retention(probe.name) or (None, 0)
    return [
        {
            "probe": probe.name,
            "window_tokens": window_tokens,
            "sink_tokens": sink_tokens,
            "num_sessions": probe.num_sessions,
            "segment": index,
            "correct": correct,
            "answered": answered,
        }
        for index, (correct, answered) in enumerate(probe.segments)
    ]


def write_derived(derived: Derived, folder: Path) -> None:
    """Write the three files, each atomically. Raises: TelemetryError."""
    for part, name in _FILES.items():
        write_text(folder / name, getattr(derived, part).to_csv(index=False))


def read_derived(folder: Path) -> Derived:
    """Read the three files. Raises: TelemetryError if one is missing or names an unknown run."""
    tables = {}
    for part, name in _FILES.items():
        path = folder / name
        try:
            tables[part] = pd.read_csv(path)
        except pd.errors.EmptyDataError:
            tables[part] = pd.DataFrame()
        except (OSError, pd.errors.ParserError) as error:
            raise TelemetryError(
                f"{path} cannot be read ({error}): run `python -m harness audit PATH`, or check it "
                "out again"
            ) from error
    unknown = [name for name in tables["runs"]["run"] if origin(str(name)) is None]
    if unknown:
        raise TelemetryError(f"{folder / _FILES['runs']}: {unknown[0]} names no published run")
    return Derived(**tables)
