import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

with warnings.catch_warnings():
    # Importing vLLM meets deprecations of its own libraries, which are errors in our tests.
    warnings.simplefilter("ignore")
    import vllm.v1.attention.backends.cpu_attn
    import vllm.v1.core.sched.scheduler  # noqa: F401

ROOT = Path(__file__).parents[2]


class EngineRoom:
    """Runs jobs in a program that forks an engine for each; see bounded_engine.py."""

    def __init__(self, log):
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
        self._log = log
        with log.open("w") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("bounded_engine.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment,
                text=True,
            )
        self._reply()

    def serve(self, **job):
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return self._reply()

    def _reply(self):
        reply = self._process.stdout.readline()
        if not reply:
            pytest.fail(f"the engine died: {self._log.read_text()[-2000:]}")
        return json.loads(reply)

    def close(self):
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()


@pytest.fixture(scope="session")
def engine_room(tmp_path_factory):
    room = EngineRoom(tmp_path_factory.mktemp("engine_room") / "log.txt")
    yield room
    room.close()
