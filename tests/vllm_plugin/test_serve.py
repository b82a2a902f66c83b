"""The command of docs/bound.md, run: a real server on loopback whose sessions stay bounded."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from harness.models.tiny import ensure_tiny_checkpoint

pytestmark = [pytest.mark.live, pytest.mark.timeout(280)]

ROOT = Path(__file__).parents[2]
WINDOW_TOKENS, SINK_TOKENS, BLOCK = 64, 16, 32
POOL_BLOCKS = 64
STEP_TOKENS = 64
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "VLLM_NO_USAGE_STATS": "1",
}


def documented_arguments():
    """Arguments of the page's `vllm serve`, with a window that a test outlives in seconds."""
    page = (ROOT / "docs" / "bound.md").read_text()
    command = re.search(r"^    (vllm serve(?:.*\\\n)*.*)$", page, re.MULTILINE).group(1)
    program, verb, model, *arguments = shlex.split(command.replace("\\\n", " "))
    assert (program, verb, model) == ("vllm", "serve", "MODEL")
    value = arguments.index("--additional-config") + 1
    entry = json.loads(arguments[value])
    assert set(entry["metronome"]) == {"window_tokens", "sink_tokens"}
    entry["metronome"] = {"window_tokens": WINDOW_TOKENS, "sink_tokens": SINK_TOKENS}
    arguments[value] = json.dumps(entry)
    return arguments


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """The server, its log and its two pages that a test reads."""

    def __init__(self, directory):
        self.model = str(ensure_tiny_checkpoint("qwen2_5_omni", ROOT / ".cache"))
        self._url = f"http://127.0.0.1:{(port := free_port())}"
        self._log = directory / "server.log"
        # What `vllm serve` runs; vLLM's CPU package has no working `vllm` command.
        program = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
        small = f"--block-size {BLOCK} --max-model-len 1024 --max-num-batched-tokens {STEP_TOKENS}"
        small += f" --num-gpu-blocks-override {POOL_BLOCKS} --enforce-eager"
        place = f"--model {self.model} --host 127.0.0.1 --port {port}"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [*program, *documented_arguments(), *small.split(), *place.split()],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": str(ROOT), **ENVIRONMENT},
                start_new_session=True,
            )

    def log(self):
        return self._log.read_text()

    def wait_until_up(self):
        while True:
            assert self._process.poll() is None, self.log()[-3000:]
            try:
                return self.get("/health")
            except OSError:
                time.sleep(0.5)

    def get(self, path):
        with urllib.request.urlopen(self._url + path, timeout=60) as answer:
            return answer.read().decode()

    def post(self, path, body):
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(
            self._url + path, json.dumps(body).encode(), headers=headers
        )
        with urllib.request.urlopen(request, timeout=240) as answer:
            return json.loads(answer.read())

    def used_blocks(self):
        found = re.search(r"^vllm:kv_cache_usage_perc\S* (\S+)$", self.get("/metrics"), re.M)
        # vLLM keeps one block for itself.
        return round(float(found.group(1)) * (POOL_BLOCKS - 1))

    def stop(self):
        if self._process.poll() is not None:
            return
        os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(30)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"))
    try:
        server.wait_until_up()
        yield server
    finally:
        server.stop()


def test_the_server_says_at_start_up_what_a_session_will_hold(server):
    (line,) = re.findall(r"sessions are bounded: .*", server.log())
    assert f"W={WINDOW_TOKENS}, S={SINK_TOKENS} in 2 of 2 layers" in line
    assert f"the pool of {POOL_BLOCKS} holds" in line


def test_a_session_of_many_windows_holds_its_plateau_and_gives_it_back(server):
    (most,) = map(int, re.findall(r"a session holds at most (\d+) blocks", server.log()))
    seen = []
    ended = threading.Event()

    def watch():
        while not ended.is_set():
            seen.append(server.used_blocks())
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    num_tokens = 8 * WINDOW_TOKENS
    body = {"model": server.model, "prompt": [5, 6, 7, 8], "max_tokens": num_tokens}
    try:
        answer = server.post("/v1/completions", {**body, "ignore_eos": True, "temperature": 0})
    finally:
        ended.set()
        watcher.join()
    assert answer["usage"]["completion_tokens"] == num_tokens
    assert 0 < max(seen) <= most < num_tokens // BLOCK
    while server.used_blocks():
        time.sleep(0.1)
