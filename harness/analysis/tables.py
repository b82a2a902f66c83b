"""The tables that figures and claims read: results/tables/<artifact>[.<part>].parquet."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pandas as pd

from harness.core.errors import TelemetryError
from harness.core.files import replacing

Tables = dict[str, pd.DataFrame]


def table_path(results: Path, artifact: str, part: str) -> Path:
    """Where one table of an artifact lies; the part named "" is its summary."""
    return results / "tables" / (f"{artifact}.{part}.parquet" if part else f"{artifact}.parquet")


def write_tables(results: Path, artifact: str, tables: Tables) -> None:
    """Write an artifact's tables, all of them or none.

    While they are put in place the summary is missing, so that tables of two calls are never read
    as one. Raises: TelemetryError.
    """
    summary = table_path(results, artifact, "")
    with ExitStack() as finishing:
        # Finished in reverse, so that the summary is put in place last.
        for part, table in sorted(tables.items()):
            partial = finishing.enter_context(replacing(table_path(results, artifact, part)))
            table.to_parquet(partial, index=False)
        summary.unlink(missing_ok=True)


def read_tables(results: Path, artifact: str) -> Tables:
    """Read an artifact's tables by part. Raises: TelemetryError if there is none."""
    summary = table_path(results, artifact, "")
    if not summary.exists():
        raise TelemetryError(
            f"{summary} is missing: run `make reproduce-all`, or the experiment, first"
        )
    parts = {
        path.stem.removeprefix(f"{artifact}."): path
        for path in summary.parent.glob(f"{artifact}.*.parquet")
    }
    tables = {part: pd.read_parquet(path) for part, path in parts.items()}
    return {"": pd.read_parquet(summary), **tables}
