"""The derived table that ships in results/paper/: facts of every published run, no copied file.

audit_runs.csv      one row a run (facts.py)
audit_medians.csv   15 s medians of every run
audit_ramps.csv     one row an admission ramp
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from harness.audit.facts import facts_table, run_medians
from harness.audit.names import origin, ramp_variant
from harness.audit.published import find_published
from harness.core.errors import TelemetryError
from harness.core.files import write_text

SHIPPED = Path(__file__).resolve().parents[2] / "results" / "paper"
_FILES = {"runs": "audit_runs.csv", "medians": "audit_medians.csv", "ramps": "audit_ramps.csv"}


@dataclass(frozen=True, kw_only=True)
class Derived:
    """Facts of all runs, their medians over time, and the ramps; columns as in the files."""

    runs: pd.DataFrame
    medians: pd.DataFrame
    ramps: pd.DataFrame


def derive(folder: Path) -> Derived:
    """Read the authors' files below `folder`. Raises: TelemetryError naming file and line."""
    runs, ramps = find_published(folder)
    ramp_rows = [{**asdict(ramp), "variant": ramp_variant(ramp.name)} for ramp in ramps]
    return Derived(
        runs=facts_table(runs),
        medians=pd.concat([run_medians(run) for run in runs], ignore_index=True),
        ramps=pd.DataFrame(ramp_rows),
    )


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
