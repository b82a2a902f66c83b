"""Fidelity: the simulator beside the live engine, run by run and in distribution.

The step time is fitted to a live run of its own. Every other live run is then simulated: the same
offer, token for token, on a pool of the same size. Where live repeats itself, run is compared with
run; where it does not, many simulated runs, each with other step times within the fitted spread,
are compared with many live ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from harness.analysis.fidelity import compare_pair, compare_samples, sample_row
from harness.analysis.runs import pool_over_time, run_summaries
from harness.analysis.tables import Tables
from harness.config import ArrivalKind, EngineKind, Invocation, RunConfig
from harness.core.digests import digest
from harness.core.errors import ConfigError
from harness.diagnosis.recording import Recording
from harness.diagnosis.verdicts import Verdict
from harness.experiments.runner import FinishedRun
from harness.experiments.step_fits import fit_runs
from harness.figures import fidelity as figure
from harness.models.hardware import HardwareSpec

SIMULATED_REPETITIONS = 40


def wanted(invocations: Sequence[Invocation]) -> list[Invocation]:
    """The grid as it stands. Raises: ConfigError if no run of it gives a step time."""
    if not any(role_of(point.run_config) == "calibration" for point in invocations):
        raise ConfigError(
            "experiment=fidelity fits its step time to runs with case=calibration, and what is "
            "named on the command line leaves none of them: name less of the grid"
        )
    return list(invocations)


def follow_up(
    invocations: Sequence[Invocation], finished: Sequence[FinishedRun]
) -> list[Invocation]:
    """Every compared live run, simulated. Raises: ConfigError if no run gives a step time."""
    fitted = fit_runs(finished)
    hardware = HardwareSpec(
        name=f"{fitted.table.hardware}_fitted",
        title="this machine, fitted",
        memory_bytes=None,
        step_times={fitted.table.model: dataclasses.asdict(fitted.cost)},
    )
    wanted: dict[str, RunConfig] = {}
    for run in (run.run for run in finished if role_of(run.run) == "live"):
        repeats = run.workload.arrivals is ArrivalKind.synchronised
        for repetition in range(SIMULATED_REPETITIONS if repeats else 1):
            simulated = dataclasses.replace(
                run,
                engine=dataclasses.replace(run.engine, kind=EngineKind.sim),
                hardware=hardware,
                repetition=repetition,
            )
            wanted[simulated.digest] = simulated
    done = {run.run.digest for run in finished}
    command = invocations[0]
    return [command.with_run(run) for digest, run in wanted.items() if digest not in done]


def role_of(run: RunConfig) -> str:
    """What a run is here for: calibration, live or simulated."""
    if run.engine.kind is EngineKind.sim:
        return "simulated"
    return "calibration" if run.engine.record_steps else "live"


def offer_of(run: RunConfig) -> str:
    """Name of what a run was offered: equal for a live run, its repetitions and simulations."""
    engine = dataclasses.replace(run.engine, kind=EngineKind.vllm, record_steps=False)
    nowhere = HardwareSpec(name="", title="", memory_bytes=None)
    return digest(dataclasses.replace(run, engine=engine, hardware=nowhere, repetition=0))


def tabulate(runs: Sequence[FinishedRun]) -> Tables:
    """The artifact's tables.

    "": one row a run, with its role and offer. pairs: one row a staggered offer. samples: one row a
    run of a synchronised offer; tests: one row a quantity of these. pool: samples of paired runs.
    """
    recorded = [(run, run.recording()) for run in runs]
    summaries = run_summaries([(run.summary, recording) for run, recording in recorded]).assign(
        role=[role_of(run.run) for run in runs],
        offer=[offer_of(run.run) for run in runs],
        arrivals=[run.run.workload.arrivals.name for run in runs],
        repetition=[run.run.repetition for run in runs],
    )
    usable = [
        (run, recording)
        for run, recording in recorded
        if recording is not None
        and run.verdict not in (Verdict.invalid, Verdict.ended_early)
        and role_of(run.run) != "calibration"
    ]
    pairs = _pairs(usable)
    samples = [
        sample_row((run.summary, recording), role=role_of(run.run))
        for run, recording in usable
        if run.run.workload.arrivals is ArrivalKind.synchronised
    ]
    sampled = pd.DataFrame(samples) if samples else pd.DataFrame({"role": []})
    shown = [side for pair in pairs for side in pair]
    return {
        "": summaries,
        "pairs": pd.DataFrame([compare_pair(*pair) for pair in pairs]),
        "samples": sampled,
        "tests": compare_samples(sampled),
        "pool": pool_over_time(shown),
    }


def _pairs(
    usable: Sequence[tuple[FinishedRun, Recording]],
) -> list[tuple[tuple[dict[str, object], Recording], tuple[dict[str, object], Recording]]]:
    """Live and simulated run of every staggered offer that has both."""
    sides: dict[str, dict[str, tuple[dict[str, object], Recording]]] = {}
    for run, recording in usable:
        if run.run.workload.arrivals is ArrivalKind.staggered:
            side = (run.summary, recording)
            sides.setdefault(offer_of(run.run), {}).setdefault(role_of(run.run), side)
    return [(pair["live"], pair["simulated"]) for pair in sides.values() if len(pair) == 2]


def draw(tables: Tables, stem: Path) -> list[Path]:
    """Draw the artifact's figure as `<stem>.pdf` and `<stem>.png`."""
    return figure.draw(tables, stem)
