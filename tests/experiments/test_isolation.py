"""What a run's process says at its end is heard, however close to its end it says it."""

from multiprocessing import Pipe
from types import SimpleNamespace
from typing import Any

import pytest

from harness.composition import compose
from harness.config import EngineKind
from harness.experiments.isolation import Outcome, RunProcesses
from harness.experiments.live_run import Progress

ENDED = SimpleNamespace(is_alive=lambda: False, exitcode=0, sentinel=None)


class DeafOnce:
    """A pipe's end at which nothing has come yet at the first look."""

    def __init__(self, reader: Any) -> None:
        self._reader, self._looks = reader, 0

    def poll(self, timeout: float = 0.0) -> bool:
        self._looks += 1
        return self._looks > 1 and self._reader.poll(timeout)

    def recv(self) -> object:
        return self._reader.recv()


def watched(*said: object) -> Outcome:
    reader, writer = Pipe(duplex=False)
    for message in said:
        writer.send(message)
    writer.close()
    run = compose(["engine=echo"]).run_config
    processes: Any = RunProcesses(EngineKind.echo)
    return processes._watch(run, ENDED, DeafOnce(reader), lambda _: None)


def test_an_outcome_that_comes_between_the_last_look_and_the_end_is_not_lost() -> None:
    whole = Outcome(reached_horizon=True)
    assert watched(Progress(phase="replaying"), whole) == whole


@pytest.mark.parametrize("said", [(), (Progress(phase="replaying"),)])
def test_a_process_that_ends_without_an_outcome_has_failed(said: tuple[object, ...]) -> None:
    found = watched(*said)
    assert not found.reached_horizon
    assert found.failure == "the run's process ended with exit code 0: see engine.log"
