"""A step time from a table of measured steps, or from runs that recorded theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from harness.config import ArrivalKind
from harness.core.errors import ConfigError
from harness.diagnosis.verdicts import Verdict
from harness.engines.step_tables import StepTable, logged_steps
from harness.engines.step_time import StepTimeFit, fit_step_time
from harness.experiments.runner import FinishedRun
from harness.models.hardware import StepTime
from harness.telemetry.schemas import FRAMES, STEPS

# Every frame of a call brings as many prompt tokens, so a frame's cost holds theirs.
LEAVE_OUT_LIVE = ("prefill_token_s",)
_DIGITS = 4


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A table of steps, what a step costs by it, and how well that fits."""

    table: StepTable
    cost: StepTime
    fit: StepTimeFit


def fit_table(
    table: StepTable, *, leave_out: Sequence[str], is_live: bool, ingest_frame_s: float = 0.0
) -> Fitted:
    """Fit a table; costs are rounded, as they are written. Raises: ConfigError."""
    try:
        fit = fit_step_time(table.steps, leave_out=leave_out, robust=is_live)
    except ConfigError as error:
        raise ConfigError(f"table of steps {table.name}: {error}") from error
    cost = StepTime(
        scale=table.scale,
        evidence=table.evidence,
        source=(
            f"fitted to {len(table.steps)} steps ({table.source}); relative error "
            f"{fit.residual(0.5):.1%} in the median, {fit.residual(0.95):.1%} at most in 95 %"
        ),
        ingest_frame_s=_rounded(ingest_frame_s),
        # What a published mean spreads by is not known.
        spread=_rounded(fit.spread) if is_live else 0.0,
        **{name: _rounded(seconds) for name, seconds in fit.costs.items()},
    )
    return Fitted(table=table, cost=cost, fit=fit)


def fit_runs(runs: Sequence[FinishedRun], *, leave_out: Sequence[str] | None = None) -> Fitted:
    """Fit the steps that runs of one model recorded.

    Raises: ConfigError if no valid run recorded steps, or they say too little.
    """
    recorded = [
        run
        for run in runs
        if run.run.engine.record_steps
        and run.verdict not in (Verdict.invalid, Verdict.never_served)
        and (run.directory / f"{STEPS.name}.parquet").exists()
    ]
    if not recorded:
        causes = "; ".join(str(run.summary["cause"]) for run in runs if run.run.engine.record_steps)
        raise ConfigError(f"no valid run recorded its steps ({causes or 'none was asked to'})")
    logs = [STEPS.read(run.directory) for run in recorded]
    first = recorded[0].run
    per_token = first.model.kv.bytes_per_token
    steps = [
        step
        for log in logs
        for step in logged_steps(log[log["begin_s"] >= 0], bytes_per_token=per_token)
    ]
    # Frames that are due at once wait for one another in the front end.
    apart = [run for run in recorded if run.run.workload.arrivals is ArrivalKind.staggered]
    ingest_s = pd.concat([FRAMES.read(run.directory)["ingest_s"] for run in apart or recorded])
    table = StepTable(
        name=f"{first.model.name}_{first.evidence.replace('-', '_')}",
        model=first.model.name,
        hardware=first.hardware.name,
        scale=first.scale.name,
        evidence=first.evidence,
        source=f"runs {', '.join(run.run.digest for run in recorded)}",
        steps=tuple(steps),
    )
    left_out = LEAVE_OUT_LIVE if leave_out is None else leave_out
    return fit_table(
        table, leave_out=left_out, is_live=True, ingest_frame_s=float(ingest_s.median())
    )


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
