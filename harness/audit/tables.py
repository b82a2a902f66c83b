"""From facts to the audit's tables: judged runs, counts, medians over time, ramps."""

from __future__ import annotations

from typing import Any

import pandas as pd

from harness.analysis.proportions import Proportion
from harness.analysis.tables import Tables
from harness.audit.derived import Derived
from harness.audit.judge import ClientVerdict, judged
from harness.audit.names import Origin, origin


def tabulate(derived: Derived) -> Tables:
    """`""`: one row a run with both verdicts; `counts`: the wall matrix by batch, N and variant."""
    runs = judged(derived.runs, _origins(derived.runs))
    matrix = runs[runs["series"] == "wall_matrix"]
    return {
        "": runs,
        "counts": _counts(matrix),
        "medians": derived.medians,
        "ramps": derived.ramps.assign(evidence="audited"),
        "probes": derived.probes.assign(evidence="audited"),
    }


def _origins(facts: pd.DataFrame) -> dict[str, Origin]:
    found = {str(name): origin(str(name)) for name in facts["run"]}
    return {name: known for name, known in found.items() if known is not None}


def _counts(matrix: pd.DataFrame) -> pd.DataFrame:
    """One row a variant, N and batch, and one a variant over all: walled, and every verdict."""
    groups = [
        *matrix.groupby(["variant", "num_sessions", "batch"]),
        *(((variant, None, None), group) for variant, group in matrix.groupby("variant")),
    ]
    rows: list[dict[str, Any]] = []
    for (variant, num_sessions, batch), group in groups:
        walled = Proportion(k=int(group["paper_rule_walled"].sum()), n=len(group))
        rows.append(
            {
                "variant": variant,
                "num_sessions": num_sessions,
                "batch": batch,
                "runs": len(group),
                "walled": walled.k,
                "walled_low": walled.interval[0],
                "walled_high": walled.interval[1],
                **{kind.name: int((group["verdict"] == kind.name).sum()) for kind in ClientVerdict},
            }
        )
    table = pd.DataFrame(
        rows,
        columns=[
            "variant",
            "num_sessions",
            "batch",
            "runs",
            "walled",
            "walled_low",
            "walled_high",
            *(kind.name for kind in ClientVerdict),
        ],
    )
    return table.astype({"num_sessions": "Int64", "batch": "Int64"})
