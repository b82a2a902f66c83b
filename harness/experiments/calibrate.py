"""Calibration: what an engine step costs, fitted to measured steps.

Steps come from the live engine of this machine, from the published tables in
results/paper/step_times/ and from results of `vllm bench serve` that the user gives. Each table of
steps yields one row of costs, its residuals, and a hardware entry that the simulator takes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from rich.table import Table

from harness.analysis.calibration import where_off
from harness.analysis.tables import Tables
from harness.config import Invocation
from harness.core.errors import ConfigError
from harness.core.files import write_text
from harness.engines.step_tables import StepTable, read_bench, read_published, step_columns
from harness.engines.step_time import FITTED
from harness.experiments.runner import FinishedRun
from harness.experiments.step_fits import Fitted, fit_runs, fit_table
from harness.figures import calibrate as figure
from harness.models.hardware import StepTime, read_hardware

_PROJECT = Path(__file__).resolve().parents[2]
PUBLISHED = _PROJECT / "results" / "paper" / "step_times"
_HARDWARE = _PROJECT / "conf" / "hardware"


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw the artifact's figure as `<stem>.pdf` and `<stem>.png`."""
    return figure.draw(tables[""], tables["steps"], stem)


def export(tables: Tables, results: Path) -> list[Path]:
    """Write results/hardware/<hardware>.yaml, an entry as in conf/hardware/, for each machine.

    What conf/hardware/ knows of the machine's memory is taken from there.
    """
    paths = []
    for name, rows in tables[""].groupby("hardware", sort=False):
        known = _HARDWARE / f"{name}.yaml"
        facts = dataclasses.asdict(read_hardware(known)) if known.exists() else {}
        step_times: dict[str, Any] = {}
        for row in rows.to_dict(orient="records"):
            # What is measured here comes before what others have published.
            step_times.setdefault(str(row["model"]), _entry(row))
        entry: dict[str, Any] = {
            "name": f"{name}_fitted",
            "title": facts.get("title", str(name)),
            "memory_bytes": facts.get("memory_bytes"),
            "memory_bytes_per_s": facts.get("memory_bytes_per_s"),
            "step_times": step_times,
        }
        path = results / "hardware" / f"{name}_fitted.yaml"
        write_text(path, yaml.safe_dump(entry, sort_keys=False, width=100))
        paths.append(path)
    return paths


def show(tables: Tables) -> Table:
    """Costs and residuals for the terminal."""
    shown = Table(title="what a step costs", title_justify="left")
    shown.add_column("")
    fits = tables[""].to_dict(orient="records")
    for row in fits:
        shown.add_column(str(row["table"]), justify="right")
    lines = {
        "evidence": [str(row["evidence"]) for row in fits],
        "measured steps": [str(row["num_steps"]) for row in fits],
        **{
            f"{name.removesuffix('_s')}, ms": [f"{row[name] * 1e3:.3g}" for row in fits]
            for name in (*FITTED, "ingest_frame_s")
        },
        "relative error, median": [f"{row['residual_median']:.1%}" for row in fits],
        "relative error, 95 %": [f"{row['residual_p95']:.1%}" for row in fits],
        "off": [str(row["off"]) for row in fits],
    }
    for label, cells in lines.items():
        shown.add_row(label, *cells)
    return shown


class Calibration:
    """The experiment as one command asks for it."""

    def __init__(self, invocation: Invocation) -> None:
        self._asked = invocation.calibration
        self._run = invocation.run_config
        self._hardware_name = invocation.hardware.name

    def wanted(self, invocations: Sequence[Invocation]) -> list[Invocation]:
        """What to run: nothing if only tables are fitted."""
        return list(invocations) if self._asked.live else []

    def tabulate(self, runs: Sequence[FinishedRun]) -> Tables:
        """The artifact's tables: one row a fit; one row a measured step."""
        fits = [fit_runs(runs, leave_out=self._asked.leave_out)] if self._asked.live else []
        bench = [Path(name) for name in self._asked.tables]
        tables = [self._bench(bench)] if bench else []
        if self._asked.published:
            tables += [read_published(path) for path in sorted(PUBLISHED.glob("*.yaml"))]
        left_out = self._asked.leave_out or ()
        fits += [fit_table(table, leave_out=left_out, is_live=False) for table in tables]
        if not fits:
            raise ConfigError(
                "calibration.live=false and calibration.published=false leave nothing to fit: "
                "name a result of `vllm bench serve` in calibration.tables"
            )
        steps = pd.concat([_step_rows(fitted) for fitted in fits], ignore_index=True)
        return {"": pd.DataFrame([_row(fitted, steps) for fitted in fits]), "steps": steps}

    def _bench(self, paths: Sequence[Path]) -> StepTable:
        """The results of one benchmark, one file or several a concurrency."""
        run = self._run
        per_token = run.model.kv.bytes_per_token
        return StepTable(
            name=f"{run.model.name}_bench",
            model=run.model.name,
            hardware=self._hardware_name,
            scale=run.scale.name,
            evidence=f"live-{run.scale.name}",
            source=f"vllm bench serve, {', '.join(path.name for path in paths)}",
            steps=tuple(
                step for path in paths for step in read_bench(path, bytes_per_token=per_token)
            ),
        )

    draw = staticmethod(draw)
    export = staticmethod(export)
    show = staticmethod(show)


def configured(invocation: Invocation) -> Calibration:
    """The experiment for one command."""
    return Calibration(invocation)


def _row(fitted: Fitted, steps: pd.DataFrame) -> dict[str, Any]:
    table, fit = fitted.table, fitted.fit
    return {
        "table": table.name,
        "model": table.model,
        "hardware": table.hardware,
        "num_steps": len(table.steps),
        **dataclasses.asdict(fitted.cost),
        "residual_median": fit.residual(0.5),
        "residual_p95": fit.residual(0.95),
        "off": where_off(steps[steps["table"] == table.name]),
    }


def _step_rows(fitted: Fitted) -> pd.DataFrame:
    return step_columns(fitted.table.steps).assign(
        table=fitted.table.name,
        evidence=fitted.table.evidence,
        predicted_s=fitted.fit.predicted_s,
        residual=fitted.fit.residuals,
    )


def _entry(row: dict[Any, Any]) -> dict[str, Any]:
    return {name: row[name] for name in StepTime.__dataclass_fields__}
