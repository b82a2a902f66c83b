"""The ledger of claims: results/claims.json for tools, results/CLAIMS.md for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.claims.catalogue import Claim
from harness.claims.judgement import ClaimVerdict, not_measured
from harness.core.files import write_json, write_text

NO_EVIDENCE = "none"
Entry = dict[str, Any]
_COLUMNS = ("id", "paper", "ours", "evidence", "verdict", "why")


def complete(claims: Sequence[Claim], entries: Sequence[Entry]) -> list[Entry]:
    """Every claim in the catalogue's order, with each evidence class that it was judged on.

    A claim without a verdict has one entry, NOT MEASURED on evidence `none`; beside a verdict such
    an entry would say nothing.
    """
    whole: list[Entry] = []
    for claim in claims:
        ours = [entry for entry in entries if entry["id"] == claim.id]
        judged = [entry for entry in ours if entry["evidence"] != NO_EVIDENCE]
        whole += judged or ours[:1] or [_unmeasured(claim)]
    return whole


def _unmeasured(claim: Claim) -> Entry:
    judgement = not_measured("no artifact of conf/artifacts.yaml decides it")
    return {
        "id": claim.id,
        "paper": claim.says,
        "ours": judgement.ours,
        "interval": None,
        "evidence": NO_EVIDENCE,
        "verdict": judgement.verdict.value,
        "why": judgement.why,
        "table": None,
        "figure": None,
    }


def tally(entries: Sequence[Entry]) -> dict[str, Counter[str]]:
    """Verdicts counted by evidence class: class -> verdict -> entries."""
    counts: dict[str, Counter[str]] = {}
    for entry in entries:
        counts.setdefault(entry["evidence"], Counter())[entry["verdict"]] += 1
    return counts


def headline(entries: Sequence[Entry]) -> str:
    """How many claims hold, on what evidence, in one sentence a class.

    NOT MEASURED is told apart and never counted as a success.
    """
    claims = {entry["id"] for entry in entries}
    unmeasured = ClaimVerdict.NOT_MEASURED.value
    measured = {entry["id"] for entry in entries if entry["verdict"] != unmeasured}
    lines = [f"{len(measured)} of {len(claims)} claims were judged on some evidence."]
    for evidence, verdicts in tally(entries).items():
        if evidence != NO_EVIDENCE:
            total = ", ".join(
                f"{verdicts[kind.value]} {kind.value}"
                for kind in ClaimVerdict
                if verdicts[kind.value]
            )
            lines.append(f"{evidence}: {total}.")
    missing = [name for name in dict.fromkeys(e["id"] for e in entries) if name not in measured]
    if missing:
        lines.append(f"NOT MEASURED on any evidence: {', '.join(missing)}.")
    return " ".join(lines)


def write_ledger(results: Path, entries: Sequence[Entry]) -> None:
    """Write every judged claim, one entry a claim and evidence class. Raises: TelemetryError."""
    write_json(results / "claims.json", list(entries))
    write_text(results / "CLAIMS.md", _markdown(entries))


def _markdown(entries: Sequence[Entry]) -> str:
    lines = [
        "# Claims of the Metronome paper, judged",
        "",
        headline(entries),
        "",
        "Verdicts are computed from the tables named below; claims: `conf/claims.yaml`, rules: "
        "`harness/claims/`.",
        "",
        "| " + " | ".join(_COLUMNS) + " | table |",
        "|" + "---|" * (len(_COLUMNS) + 1),
    ]
    for entry in entries:
        cells = [str(entry[column]).replace("|", "\\|") for column in _COLUMNS]
        table = f"`{entry['table']}`" if entry["table"] else "-"
        lines.append("| " + " | ".join(cells) + f" | {table} |")
    return "\n".join(lines) + "\n"
