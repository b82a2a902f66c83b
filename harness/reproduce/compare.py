"""`python -m harness compare`: the results here beside the kept ones, metric by metric.

A deviation is a difference that neither the metric's tolerance nor the machine explains. Tolerances
and the metrics that depend on the machine are named in conf/comparison.yaml.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from rich.console import Console
from rich.table import Table

from harness.analysis.tables import read_tables
from harness.composition import CONFIG_DIR
from harness.core.errors import ConfigError, HarnessError, TelemetryError
from harness.reproduce.reference import REFERENCE, Reference, read_reference

# What the same packages compute on another processor differs by at most this, relatively.
_ROUNDING = 1e-6


@dataclass(frozen=True, kw_only=True)
class Tolerances:
    """How live rows are compared, by column; other rows, and columns not named, must be equal.

    relative: difference over the kept value. absolute: difference in the column's own unit.
    machine_dependent: shown as a ratio, not judged. ignored: of no row, names and wordings.
    not_repeatable: artifacts whose live runs differ by nature; only their claims are compared.
    repeatable_evidence: classes whose rows come out the same on every machine.
    """

    relative: dict[str, float]
    absolute: dict[str, float]
    machine_dependent: tuple[str, ...]
    ignored: tuple[str, ...]
    not_repeatable: tuple[str, ...]
    repeatable_evidence: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Deviation:
    """A value outside its tolerance; `where` names the row, or the claim."""

    where: str
    metric: str
    kept: Any
    here: Any
    allowed: str


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One artifact: values compared, those outside, and how machine-dependent ones compare.

    ratios: column -> median over the rows of value here / value kept.
    """

    num_compared: int = 0
    deviations: list[Deviation] = field(default_factory=list)
    ratios: dict[str, float] = field(default_factory=dict)
    note: str = ""


def main(arguments: Sequence[str]) -> int:
    """Run the command; 0 if nothing deviates, else 1."""
    parser = argparse.ArgumentParser(prog="python -m harness compare", description=__doc__)
    parser.add_argument("--only", metavar="ID", action="append", help="artifact; may be repeated")
    parser.add_argument("--results", type=Path, default=Path("results"), help="results directory")
    parser.add_argument("--reference", type=Path, default=REFERENCE, help="what to compare with")
    asked = parser.parse_args(arguments)
    console = Console(highlight=False)
    try:
        reference = read_reference(asked.reference)
        compared = compare_all(reference, asked.results, load_tolerances(), asked.only)
    except HarnessError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    _show(compared, console)
    return 1 if any(comparison.deviations for comparison in compared.values()) else 0


def load_tolerances(path: Path = CONFIG_DIR / "comparison.yaml") -> Tolerances:
    """Read them. Raises: ConfigError on an unknown or missing field."""
    fields: dict[str, Any] = yaml.safe_load(path.read_text())
    fields |= {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    try:
        return Tolerances(**fields)
    except TypeError as error:
        raise ConfigError(f"{path.name}: {error}") from error


def compare_all(
    reference: Reference, results: Path, tolerances: Tolerances, only: Sequence[str] | None
) -> dict[str, Comparison]:
    """Every kept artifact that was made here, and the claims under the name `claims`.

    Raises: ConfigError if `only` names what is not kept; TelemetryError if nothing was made here.
    """
    for name in only or ():
        if name not in reference.summaries:
            known = " or ".join(sorted(reference.summaries))
            raise ConfigError(f"--only={name} is not kept: choose {known}")
    compared: dict[str, Comparison] = {}
    for name in only or sorted(reference.summaries):
        try:
            here = read_tables(results, name)[""]
        except TelemetryError:
            compared[name] = Comparison(note="not made here")
            continue
        if name in tolerances.not_repeatable:
            compared[name] = Comparison(note="live runs do not repeat: compared by its claims")
        else:
            compared[name] = compare(reference.summaries[name], here, tolerances)
    if all(comparison.note == "not made here" for comparison in compared.values()):
        raise TelemetryError(f"nothing to compare in {results}: run `make reproduce-all` first")
    compared["claims"] = compare_claims(reference.claims, _claims(results))
    return compared


def compare(kept: pd.DataFrame, here: pd.DataFrame, tolerances: Tolerances) -> Comparison:
    """Row by row in the grid's order, column by column."""
    if len(kept) != len(here):
        rows = Deviation(where="table", metric="rows", kept=len(kept), here=len(here), allowed="=")
        return Comparison(num_compared=1, deviations=[rows])
    evidence = kept["evidence"] if "evidence" in kept else [""] * len(kept)
    repeats = [kind in tolerances.repeatable_evidence for kind in evidence]
    deviations: list[Deviation] = []
    ratios: dict[str, float] = {}
    num_compared = 0
    for column in (str(name) for name in kept if name in here and name not in tolerances.ignored):
        judged = list(range(len(kept)))
        if column in tolerances.machine_dependent:
            free = [row for row in judged if not repeats[row]]
            judged = [row for row in judged if repeats[row]]
            ratios[column] = _median_ratio(kept[column].iloc[free], here[column].iloc[free])
        for row in judged:
            old, new = kept[column].iloc[row], here[column].iloc[row]
            allowed, text = _allowed(column, old, repeats[row], tolerances)
            num_compared += 1
            if not _agree(old, new, allowed):
                where = _row_name(kept.iloc[row], row)
                deviations.append(
                    Deviation(where=where, metric=column, kept=old, here=new, allowed=text)
                )
    return Comparison(num_compared=num_compared, deviations=deviations, ratios=ratios)


def compare_claims(kept: Sequence[dict[str, Any]], here: Sequence[dict[str, Any]]) -> Comparison:
    """The verdict of every claim and evidence class that was judged in both."""
    verdicts = {(entry["id"], entry["evidence"]): entry["verdict"] for entry in here}
    shared = [entry for entry in kept if (entry["id"], entry["evidence"]) in verdicts]
    deviations = [
        Deviation(
            where=f"{entry['id']} ({entry['evidence']})",
            metric="verdict",
            kept=entry["verdict"],
            here=verdicts[entry["id"], entry["evidence"]],
            allowed="=",
        )
        for entry in shared
        if entry["verdict"] != verdicts[entry["id"], entry["evidence"]]
    ]
    return Comparison(num_compared=len(shared), deviations=deviations)


def _claims(results: Path) -> list[dict[str, Any]]:
    path = results / "claims.json"
    if not path.exists():
        raise TelemetryError(f"{path} is missing: run `make claims` first")
    entries: list[dict[str, Any]] = json.loads(path.read_text())
    return entries


def _allowed(
    column: str, old: Any, is_repeatable: bool, tolerances: Tolerances
) -> tuple[float, str]:
    """How far a number may be off, in its own unit, and the same in words."""
    scale = abs(old) if isinstance(old, (int, float)) and np.isfinite(old) else 0.0
    if is_repeatable:
        return _ROUNDING * scale, "="
    if column in tolerances.relative:
        share = tolerances.relative[column]
        return share * scale, f"within {share:.0%}"
    if column in tolerances.absolute:
        return tolerances.absolute[column], f"within {tolerances.absolute[column]:g}"
    return _ROUNDING * scale, "="


def _agree(old: Any, new: Any, allowed: float) -> bool:
    if pd.isna(old) or pd.isna(new):
        return bool(pd.isna(old) and pd.isna(new))
    if isinstance(old, (int, float)) and isinstance(new, (int, float)):
        return bool(abs(old - new) <= allowed)
    return str(old) == str(new)


def _median_ratio(kept: pd.Series, here: pd.Series) -> float:
    ratio = pd.to_numeric(here, errors="coerce") / pd.to_numeric(kept, errors="coerce")
    return float(ratio.replace([np.inf, -np.inf], np.nan).median())


def _row_name(row: pd.Series, number: int) -> str:
    named = [str(row[name]) for name in ("model", "variant", "seed") if name in row]
    return f"row {number}" + (f" ({', '.join(named)})" if named else "")


def _show(compared: dict[str, Comparison], console: Console) -> None:
    table = Table(title="here, beside results/reference", title_justify="left")
    for head in ("artifact", "compared", "outside", "machine-dependent: here / kept, or note"):
        table.add_column(head)
    for name, comparison in compared.items():
        ratios = ", ".join(
            f"{column} x{ratio:.2f}"
            for column, ratio in comparison.ratios.items()
            if ratio == ratio
        )
        table.add_row(
            name,
            str(comparison.num_compared),
            str(len(comparison.deviations)),
            comparison.note or ratios,
        )
    console.print(table)
    for name, comparison in compared.items():
        for off in comparison.deviations:
            console.print(
                f"{name}, {off.where}: {off.metric} {off.here}, kept {off.kept} ({off.allowed})",
                soft_wrap=True,
            )
