"""From a configuration to a finished run directory, once.

    results/runs/<experiment>/<digest>/
        config.yaml provenance.json schedule.parquet    written before the run
        frames.parquet pool.parquet events.parquet      what happened
        decisions.parquet intervals.parquet             who was let in, and why
        verdict.json DONE                               last

A directory with DONE is never run again. Without it, whatever lies there is from a run that was cut
short, failed or proved invalid: its verdict.json says so, and the next call starts it anew. Of
several processes that want the same run, on one machine or many, one does it and the others wait.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from filelock import FileLock, Timeout

from harness.config import EngineKind, Paths, Regime, RunConfig, ScaleName
from harness.core.digests import plain
from harness.core.errors import TelemetryError
from harness.core.files import write_json, write_text
from harness.diagnosis.recording import Recording
from harness.diagnosis.summary import answered, scored, summarise, unserved
from harness.diagnosis.verdicts import Diagnosis, Verdict
from harness.engines.vllm_args import checkpoint_of
from harness.experiments.conversing_run import spoken_questions
from harness.experiments.isolation import (
    POLL_S,
    STOP_GRACE_S,
    WRITER_LOCK,
    Outcome,
    RunProcesses,
)
from harness.experiments.live_run import Progress, Report
from harness.models.probe import probe_checkpoint
from harness.telemetry import schemas
from harness.telemetry.provenance import provenance
from harness.workload.schedule import build_schedule, load_run_streams

DONE = "DONE"
VERDICT = "verdict.json"
_LOCK = ".lock"
# Such a run says nothing about what was asked: it is shown, and tried again by the next call.
NO_RESULT = (Verdict.never_served, Verdict.engine_dead, Verdict.ended_early, Verdict.invalid)


@dataclass(frozen=True, kw_only=True)
class FinishedRun:
    """A run directory and what verdict.json says of it.

    failure: why it is no result although the verdict is of one; None if there is nothing to say.
    """

    run: RunConfig
    directory: Path
    summary: dict[str, Any]
    was_cached: bool
    failure: str | None = None

    @property
    def is_result(self) -> bool:
        """Whether the run is read back by the next call, not tried again."""
        return self.failure is None and self.verdict not in NO_RESULT

    @property
    def verdict(self) -> Verdict:
        """What became of the run."""
        return Verdict[self.summary["verdict"]]

    def recording(self) -> Recording | None:
        """The recorded tables; None if the engine never came up. Raises: TelemetryError if torn."""
        recorded = (self.directory / f"{schemas.FRAMES.name}.parquet").exists()
        return read_recording(self.directory) if recorded else None

    @property
    def has_recorded(self) -> bool:
        """Whether there is anything to draw of this run."""
        names = (schemas.FRAMES.name, schemas.SCORES.name, schemas.ANSWERS.name)
        return any((self.directory / f"{name}.parquet").exists() for name in names)

    def answers(self) -> pd.DataFrame | None:
        """What was said in a run of conversations; None if it did not go to its end."""
        recorded = (self.directory / f"{schemas.ANSWERS.name}.parquet").exists()
        return schemas.ANSWERS.read(self.directory) if recorded else None

    def attention(self) -> pd.DataFrame | None:
        """Where attention went in an unbounded run of the reference; None for any other."""
        recorded = (self.directory / f"{schemas.ATTENTION.name}.parquet").exists()
        return schemas.ATTENTION.read(self.directory) if recorded else None

    def scores(self) -> pd.DataFrame | None:
        """Log-probabilities of a scored run; None if it did not go to its end."""
        recorded = (self.directory / f"{schemas.SCORES.name}.parquet").exists()
        return schemas.SCORES.read(self.directory) if recorded else None


def read_recording(directory: Path) -> Recording:
    """Read a run directory's tables. Raises: TelemetryError."""
    return Recording(
        frames=schemas.FRAMES.read(directory),
        pool=schemas.POOL.read(directory),
        events=schemas.EVENTS.read(directory),
        schedule=schemas.SCHEDULE.read(directory),
        decisions=schemas.DECISIONS.read(directory),
        intervals=schemas.INTERVALS.read(directory),
    )


def recorded_runs(runs: Sequence[FinishedRun]) -> list[tuple[FinishedRun, Recording]]:
    """The runs that have a recording, with it. Raises: TelemetryError if one is torn."""
    read = [(run, run.recording()) for run in runs]
    return [(run, recording) for run, recording in read if recording is not None]


class Runner:
    """Runs configurations one after the other, skipping finished ones.

    processes: shared by all runs, so that the fork server starts once.
    """

    def __init__(self, paths: Paths, processes: RunProcesses, *, rerun: bool = False) -> None:
        self._paths = paths
        self._processes = processes
        self._rerun = rerun

    def directory(self, run: RunConfig) -> Path:
        """Where a run's results lie."""
        return self._paths.results / "runs" / run.experiment / run.digest

    def run(self, run: RunConfig, watch: Report) -> FinishedRun:
        """Run it, or read what an equal configuration left.

        Raises: CorpusError before anything is written; TelemetryError if the results directory
        cannot be written; KeyboardInterrupt after the cut run has been recorded as such.
        """
        directory = self.directory(run)
        if finished := self._finished(run):
            return finished
        if run.model.is_probe and run.engine.kind in (EngineKind.vllm, EngineKind.reference):
            probe_checkpoint(run.model, self._paths.cache)
        if run.scale is ScaleName.full and run.engine.kind is EngineKind.vllm:
            # Before the run's process, whose start-up is timed.
            watch(Progress(phase="fetching weights"))
            checkpoint_of(run, self._paths.cache)
        schedule = None
        if run.workload.regime in (Regime.free_running, Regime.turns):
            # A missing corpus is said here, not by an engine that was started for it.
            spoken_questions(run, self._paths.cache)
        if run.workload.regime is Regime.replay:
            schedule = build_schedule(run, load_run_streams(run, self._paths.cache / "corpora"))
        with self._exclusively(directory, watch):
            if finished := self._finished(run):
                return finished
            _clear(directory)
            write_text(directory / "config.yaml", yaml.safe_dump(plain(run), sort_keys=False))
            origin = provenance(run, command=sys.argv, evidence=run.evidence)
            write_json(directory / "provenance.json", origin)
            if schedule is not None:
                schemas.SCHEDULE.write(schedule, directory)
            try:
                outcome = self._processes.run(run, directory, self._paths.cache, watch)
            except KeyboardInterrupt:
                _conclude(run, directory, Outcome(reached_horizon=False, failure="interrupted"))
                raise
            summary = _conclude(run, directory, outcome)
        cut_short = None if outcome.reached_horizon else "its process did not say how it ended"
        return FinishedRun(
            run=run,
            directory=directory,
            summary=summary,
            was_cached=False,
            failure=cut_short and (outcome.failure or cut_short),
        )

    def _finished(self, run: RunConfig) -> FinishedRun | None:
        """What an equal configuration left; None if it is not finished or is to be run again."""
        directory = self.directory(run)
        if self._rerun or not (directory / DONE).exists():
            return None
        try:
            summary = json.loads((directory / VERDICT).read_text())
        except FileNotFoundError:
            # Another process is running it again.
            return None
        return FinishedRun(run=run, directory=directory, summary=summary, was_cached=True)

    @contextmanager
    def _exclusively(self, directory: Path, watch: Report) -> Iterator[None]:
        """Hold a run directory against other processes; the lock dies with its holder.

        Raises: TelemetryError; KeyboardInterrupt if the runs are stopped while another process is
        at this one.
        """
        lock = FileLock(directory / _LOCK)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            while not _is_acquired(lock):
                if self._processes.is_stopping:
                    raise KeyboardInterrupt
                watch(Progress(phase="waiting for another process at this run"))
            # A run whose parent was killed may still be writing its last files.
            with FileLock(directory / WRITER_LOCK, timeout=STOP_GRACE_S):
                pass
        except Timeout:
            lock.release()
            raise TelemetryError(
                f"{directory} is still being written by a run whose command was killed: wait for "
                "it, or choose another paths.results_dir"
            ) from None
        except OSError as error:
            raise TelemetryError(
                f"cannot write {directory}: {error.strerror}: choose another paths.results_dir"
            ) from error
        try:
            yield
        finally:
            lock.release()


def _is_acquired(lock: FileLock) -> bool:
    try:
        lock.acquire(timeout=POLL_S)
    except Timeout:
        return False
    return True


def _conclude(run: RunConfig, directory: Path, outcome: Outcome) -> dict[str, Any]:
    """Judge what is on disk, write the verdict, and DONE if the run is a result."""
    try:
        regime = run.workload.regime
        if regime is Regime.score:
            summary = scored(run, schemas.SCORES.read(directory))
        elif regime is not Regime.replay:
            summary = answered(run, schemas.ANSWERS.read(directory))
        else:
            summary = summarise(run, read_recording(directory))
    except TelemetryError:
        cause = outcome.failure or "the run left no recording"
        summary = unserved(run, Diagnosis(verdict=Verdict.never_served, cause=cause))
    write_json(directory / VERDICT, summary)
    if outcome.reached_horizon and Verdict[summary["verdict"]] not in NO_RESULT:
        write_text(directory / DONE, "")
    return summary


def _clear(directory: Path) -> None:
    """Remove an earlier attempt, its verdict first, so that no half is ever taken for a whole."""
    for name in (DONE, VERDICT):
        (directory / name).unlink(missing_ok=True)
    for path in directory.iterdir():
        if path.is_file() and path.name not in (_LOCK, WRITER_LOCK):
            path.unlink()
