"""`python -m harness audit PATH`: read the authors' files, judge them, draw, and say what follows.

Without PATH, the same from the derived table that ships in results/paper/.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table

from harness.analysis.tables import Tables, write_tables
from harness.audit.derived import SHIPPED, Derived, derive, read_derived, write_derived
from harness.audit.judge import ClientVerdict
from harness.audit.reading import readings
from harness.audit.tables import tabulate
from harness.core.errors import HarnessError
from harness.figures import audit as figure

ARTIFACT = "audit"
CAVEAT = (
    "These are the clients' logs. Engine logs, pool occupancy and token counts of the runs are not "
    "published: 'quiet' is inferred from latency, and its cause only from when it happens."
)


def main(arguments: Sequence[str]) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m harness audit", description=__doc__)
    parser.add_argument("path", type=Path, nargs="?", help="the authors' results (any depth)")
    parser.add_argument("--results", type=Path, default=Path("results"), help="results directory")
    asked = parser.parse_args(arguments)
    console = Console(highlight=False)
    try:
        if asked.path is not None:
            write_derived(derive(asked.path), asked.results / "paper")
        regenerate(asked.results, console)
    except HarnessError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def regenerate(results: Path, console: Console) -> None:
    """Tables and figure from the derived table in `results`, or from the one that ships.

    Raises: TelemetryError.
    """
    tables = audit_tables(read_derived(_derived_folder(results)))
    write_tables(results, ARTIFACT, tables)
    paths = figure.draw(tables, results / "figures" / ARTIFACT)
    console.print(_count_table(tables["counts"]))
    console.print(_reading_table(tables["reading"]))
    console.print(CAVEAT, soft_wrap=True)
    for path in paths:
        console.print(f"figure: {path}", soft_wrap=True)


def audit_tables(derived: Derived) -> Tables:
    """All tables of the artifact, with the statements checked against them."""
    tables = tabulate(derived)
    return {**tables, "reading": readings(tables[""], tables["ramps"])}


def _derived_folder(results: Path) -> Path:
    own = results / "paper"
    return own if own.is_dir() else SHIPPED


def _count_table(counts: pd.DataFrame) -> Table:
    kinds = [kind for kind in ClientVerdict if counts[kind.name].any()]
    table = Table(title="the published wall matrix", title_justify="left")
    for head in ("variant", "N", "batch", "walled by the paper's rule", *(k.value for k in kinds)):
        table.add_column(head)
    for row in counts.to_dict(orient="records"):
        where = ["all" if pd.isna(row[key]) else str(row[key]) for key in ("num_sessions", "batch")]
        cells = (str(row[kind.name]) for kind in kinds)
        table.add_row(row["variant"], *where, f"{row['walled']}/{row['runs']}", *cells)
    return table


def _reading_table(found: pd.DataFrame) -> Table:
    table = Table(title="statements on the logs", title_justify="left", show_lines=True)
    for head in ("statement", "holds", "found"):
        table.add_column(head)
    for row in found.to_dict(orient="records"):
        table.add_row(row["statement"], "yes" if row["holds"] else "no", row["found"])
    return table
