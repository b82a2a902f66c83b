"""Every run in a process of its own, so that nothing of one engine leaks into the next.

A fork server (Python's own) imports vLLM once; each run forks from it in milliseconds, makes itself
a process group, and is watched: a run that does not start, stops reporting or is killed ends here
as an `Outcome`, not as a traceback. Ctrl-C reaches only the parent, which asks the runs to stop and
waits until their recordings are on disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path

from filelock import FileLock

from harness.config import EngineKind, Regime, RunConfig
from harness.core import clock
from harness.core.errors import HarnessError
from harness.experiments.conversing_run import converse_run
from harness.experiments.live_run import Progress, Report, replay_run
from harness.experiments.scoring_run import score_run

LOG_NAME = "engine.log"
WRITER_LOCK = ".writer.lock"
POLL_S = 0.2
STOP_GRACE_S = 15.0
EXIT_GRACE_S = 5.0
# A run that reports twice a second and has been quiet for this long is stuck.
QUIET_TIMEOUT_S = 30.0
# What the fork server imports once, for all runs.
_PRELOADS = {
    EngineKind.vllm: "harness.experiments.vllm_preload",
    EngineKind.sim: "harness.experiments.sim_preload",
}


_WORK = {
    Regime.replay: replay_run,
    Regime.score: score_run,
    Regime.free_running: converse_run,
    Regime.turns: converse_run,
}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run's process ended.

    reached_horizon: the replay went to its end (the engine may have died on the way).
    failure: what a person needs to know if the run did not start or did not end by itself.
    """

    reached_horizon: bool
    failure: str | None = None


class RunProcesses:
    """Starts and watches run processes, also from several threads; one fork server for all."""

    def __init__(self, engine: EngineKind) -> None:
        self._context = multiprocessing.get_context("forkserver")
        if engine in _PRELOADS:
            self._context.set_forkserver_preload([_PRELOADS[engine]])
        # Starting a process also reaps others, and an exit status can be read only once.
        self._reaping = threading.Lock()
        self._is_stopping = threading.Event()

    def stop(self) -> None:
        """Have every `run` in progress end as if by Ctrl-C, and every later one not begin."""
        self._is_stopping.set()

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._is_stopping.is_set()

    def run(self, run: RunConfig, directory: Path, cache: Path, watch: Report) -> Outcome:
        """Run in a fresh process until it ends, fails, hangs, Ctrl-C or `stop`.

        Raises: KeyboardInterrupt, after the run has written what it recorded.
        """
        reader, writer = self._context.Pipe(duplex=False)
        process = self._context.Process(
            target=_child, args=(run, directory, cache, writer), name=f"run-{run.digest}"
        )
        with self._reaping:
            process.start()
        writer.close()
        try:
            return self._watch(run, process, reader, watch)
        except KeyboardInterrupt:
            _signal(process.pid, signal.SIGTERM)
            wait([process.sentinel], STOP_GRACE_S)
            raise
        finally:
            _kill_group(process.pid)
            wait([process.sentinel])
            self._has_ended(process)
            reader.close()

    def _watch(
        self,
        run: RunConfig,
        process: multiprocessing.process.BaseProcess,
        reader: Connection,
        watch: Report,
    ) -> Outcome:
        started = heard = time.monotonic()
        phase = "starting"
        while True:
            if self.is_stopping:
                raise KeyboardInterrupt
            message: Progress | Outcome | None = None
            if reader.poll(POLL_S):
                with contextlib.suppress(EOFError):
                    message = reader.recv()
            now = time.monotonic()
            if isinstance(message, Outcome):
                # What it still has to do is give back what it holds of the system.
                wait([process.sentinel], EXIT_GRACE_S)
                return message
            if isinstance(message, Progress):
                heard, phase = now, message.phase
                watch(message)
            elif self._has_ended(process):
                # It may have spoken and ended since the look at what came.
                return _last_word(reader) or Outcome(
                    reached_horizon=False, failure=_death(process.exitcode)
                )
            elif phase == "starting" and now - started > run.engine.startup_timeout_s:
                failure = (
                    f"the engine was not up after engine.startup_timeout_s="
                    f"{run.engine.startup_timeout_s:g}: raise it, or see {LOG_NAME}"
                )
                return Outcome(reached_horizon=False, failure=failure)
            elif phase != "starting" and now - heard > QUIET_TIMEOUT_S:
                failure = f"the run's process stopped reporting for {QUIET_TIMEOUT_S:g} s"
                return Outcome(reached_horizon=False, failure=failure)

    def _has_ended(self, process: multiprocessing.process.BaseProcess) -> bool:
        with self._reaping:
            return not process.is_alive()


def _last_word(reader: Connection) -> Outcome | None:
    """What a process that has ended still had to say of its end."""
    with contextlib.suppress(EOFError):
        while reader.poll():
            message = reader.recv()
            if isinstance(message, Outcome):
                return message
    return None


def _death(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        return f"the run's process was killed by {signal.Signals(-exitcode).name}"
    return f"the run's process ended with exit code {exitcode}: see {LOG_NAME}"


def _child(run: RunConfig, directory: Path, cache: Path, writer: Connection) -> None:
    os.setsid()
    # A collection that walks all that the fork server imported takes half a second.
    gc.freeze()
    log = os.open(directory / LOG_NAME, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(log, stream.fileno())

    def report(progress: Progress) -> None:
        try:
            writer.send(progress)
        except OSError:
            # The parent is gone, and with it whoever wanted this run.
            os.kill(os.getpid(), signal.SIGTERM)

    try:
        # Held until the last file is written, also when the parent was killed in between.
        with FileLock(directory / WRITER_LOCK):
            drive = clock.run_virtual if run.engine.kind is EngineKind.sim else asyncio.run
            drive(_until_terminated(run, directory, cache, report))
        outcome = Outcome(reached_horizon=True)
    except asyncio.CancelledError:
        outcome = Outcome(reached_horizon=False, failure="interrupted")
    except HarnessError as error:
        outcome = Outcome(reached_horizon=False, failure=str(error))
    with contextlib.suppress(OSError):
        writer.send(outcome)
    writer.close()


async def _until_terminated(run: RunConfig, directory: Path, cache: Path, report: Report) -> None:
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    # Not loop.add_signal_handler: its wake-up pipe is inherited by the forked engine core, and a
    # signal to that process would then cancel this one.
    signal.signal(signal.SIGTERM, lambda *_: loop.call_soon_threadsafe(task.cancel))
    await _WORK[run.workload.regime](run, directory, cache, report)


def _signal(pid: int | None, number: signal.Signals) -> None:
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _kill_group(pid: int | None) -> None:
    """End the engine core and whatever else a run has left behind."""
    if pid is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
