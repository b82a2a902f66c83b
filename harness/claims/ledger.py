"""The ledger of claims: results/claims.json for tools, results/CLAIMS.md for people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.core.files import write_json, write_text

_COLUMNS = ("id", "paper", "ours", "evidence", "verdict", "why")


def write_ledger(results: Path, entries: Sequence[dict[str, Any]]) -> None:
    """Write every judged claim, one entry a claim and evidence class. Raises: TelemetryError."""
    write_json(results / "claims.json", list(entries))
    write_text(results / "CLAIMS.md", _markdown(entries))


def _markdown(entries: Sequence[dict[str, Any]]) -> str:
    counts: dict[str, int] = {}
    for entry in entries:
        counts[entry["verdict"]] = counts.get(entry["verdict"], 0) + 1
    total = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    lines = [
        "# Claims of the Metronome paper, judged",
        "",
        f"{total}. Verdicts are computed from the tables named below; rules: `harness/claims/`.",
        "",
        "| " + " | ".join(_COLUMNS) + " | table |",
        "|" + "---|" * (len(_COLUMNS) + 1),
    ]
    for entry in entries:
        cells = [str(entry[column]).replace("|", "\\|") for column in _COLUMNS]
        lines.append("| " + " | ".join(cells) + f" | `{entry['table']}` |")
    return "\n".join(lines) + "\n"
