"""The main job, live and small: real vLLM, real speech, 1 s frames, 4 calls, 12 s a variant."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from harness.composition import expand
from harness.config import EngineKind, Invocation
from harness.core.errors import EngineError
from harness.diagnosis.verdicts import Verdict
from harness.experiments.isolation import RunProcesses
from harness.experiments.live_run import Progress
from harness.experiments.runner import DONE, FinishedRun, Runner
from harness.experiments.session import run_experiment
from harness.workload.corpus import load_corpus
from harness.workload.schedule import build_schedule, draw_run_streams, schedule_digest
from tests.experiments.conftest import PATIENT

pytestmark = pytest.mark.live

CACHE = Path(__file__).resolve().parents[2] / ".cache"
SMALL = (
    "model.frame_budget_s=1",
    "workload.num_sessions=4",
    "workload.duration_s=12",
    "engine.kv_pool_blocks=32",
    "engine.max_model_len=512",
    "engine.max_num_batched_tokens=64",
    *PATIENT,
)
BOUND = ("retention.window_tokens=64", "retention.sink_tokens=32")


@pytest.fixture(scope="module")
def processes() -> RunProcesses:
    """One fork server for the module."""
    return RunProcesses(EngineKind.vllm)


def _points(tmp_path: Path, *overrides: str) -> list[Invocation]:
    paths = (f"paths.results_dir={tmp_path}", f"paths.cache_dir={CACHE}")
    return expand([*SMALL, *paths, *overrides])


def _quiet(_: Progress) -> None:
    """Nobody watches."""


def _run(point: Invocation, processes: RunProcesses, watch: object = _quiet) -> FinishedRun:
    return Runner(point.paths, processes).run(point.run_config, watch)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def unbounded(tmp_path_factory: pytest.TempPathFactory, processes: RunProcesses) -> FinishedRun:
    """The calls of seed 0 without a bound."""
    directory = tmp_path_factory.mktemp("unbounded")
    return _run(_points(directory, "retention=unbounded")[0], processes)


def test_unbounded_goes_silent_and_the_gateway_does_not_notice(unbounded: FinishedRun) -> None:
    finished = unbounded
    summary = finished.summary
    assert finished.verdict in (Verdict.stalled, Verdict.shedding), summary["cause"]
    assert summary["deadline_miss_share"] > 0.1
    assert summary["tick_view_miss_share"] == 0.0
    assert summary["latency_p50_s"] < 0.25
    assert summary["peak_occupancy"] > 0.9
    # The pool was watched while nothing moved.
    recording = finished.recording()
    assert recording is not None
    stalled = recording.pool[recording.pool["t_s"] > summary["last_token_s"] + 0.5]
    assert len(stalled) > 4
    assert (stalled["state_age_s"] < 0.5).all()


def test_bounded_is_alive_to_the_end_with_every_token(
    tmp_path: Path, processes: RunProcesses
) -> None:
    finished = _run(_points(tmp_path, "retention=sink_window", *BOUND)[0], processes)
    assert finished.verdict is Verdict.alive, finished.summary["cause"]
    assert finished.summary["completeness"] == 1.0
    report = json.loads((finished.directory / "bound.json").read_text())
    assert (report["window_tokens"], report["sink_tokens"]) == (64, 32)
    # 63 tokens of window and 34 of a frame on 4 blocks, 1 for an unaligned start, 1 of sinks.
    recording = finished.recording()
    assert recording is not None
    assert recording.pool["used_blocks"].max() <= 4 * 6


def test_a_killed_engine_core_is_a_verdict_and_its_data_is_kept(
    tmp_path: Path, processes: RunProcesses, capsys: pytest.CaptureFixture[str]
) -> None:
    point = _points(tmp_path, "retention=unbounded", "engine.kv_pool_blocks=200")[0]

    def kill(seen: Progress) -> None:
        if seen.elapsed_s > 4:
            for process in psutil.Process().children(recursive=True):
                if "EngineCore" in process.name() or "EngineCore" in "".join(process.cmdline()):
                    os.kill(process.pid, signal.SIGKILL)

    finished = _run(point, processes, kill)
    assert finished.verdict is Verdict.engine_dead, finished.summary["cause"]
    assert finished.summary["last_token_s"] > 2
    assert 0 < finished.summary["completeness"] < 1
    assert not (finished.directory / DONE).exists()
    recording = finished.recording()
    assert recording is not None
    assert len(recording.frames) == 4 * 12


def test_rotation_before_max_model_len_keeps_every_call_alive(
    tmp_path: Path, processes: RunProcesses
) -> None:
    # 5 frames of 34 tokens fit below 180; 12 frames a call make two rotations each.
    limits = ("engine.max_model_len=180", "engine.on_max_model_len=rotate")
    finished = _run(_points(tmp_path, "retention=unbounded", *limits)[0], processes)
    assert finished.verdict is Verdict.alive, finished.summary["cause"]
    assert finished.summary["completeness"] == 1.0
    recording = finished.recording()
    assert recording is not None
    rotated = recording.events_of("rotated").groupby("session_id").size()
    assert rotated.to_dict() == {0: 2, 1: 2, 2: 2, 3: 2}


def test_a_bound_that_is_not_in_force_is_noticed(tmp_path: Path) -> None:
    # As if the package were not installed: vLLM is told to load no plugin.
    command = [sys.executable, "-m", "harness", *SMALL, "retention=sink_window", *BOUND]
    done = subprocess.run(
        [*command, f"paths.results_dir={tmp_path}", f"paths.cache_dir={CACHE}"],
        env=os.environ | {"VLLM_PLUGINS": "none"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == EngineError.exit_code
    assert "2 layers keep everything" in done.stderr
    assert "VLLM_PLUGINS unset" in done.stderr


def test_an_engine_that_is_not_up_in_time_is_a_verdict_and_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = _points(tmp_path, "retention=unbounded", "engine.startup_timeout_s=0.5")
    assert run_experiment(points) == EngineError.exit_code
    errors = capsys.readouterr().err
    assert errors.startswith("error: never_served: the engine was not up after")
    assert errors.count("\n") == 1


def test_three_seeds_give_the_same_verdicts_and_one_seed_one_schedule(
    tmp_path: Path, processes: RunProcesses, unbounded: FinishedRun
) -> None:
    points = [_points(tmp_path, "retention=unbounded", f"seed={seed}")[0] for seed in (1, 2)]
    runs = [unbounded, *(_run(point, processes) for point in points)]
    assert {finished.verdict.is_collapse for finished in runs} == {True}
    digests = [finished.summary["schedule_digest"] for finished in runs]
    assert len(set(digests)) == 3
    first = unbounded.run
    rate = first.model.sample_rate_hz
    clips = load_corpus(first.workload.corpora, cache_dir=CACHE / "corpora", sample_rate_hz=rate)
    again = build_schedule(first, draw_run_streams(first, clips))
    assert schedule_digest(again) == digests[0]
