"""From overrides to run directories, tables and figure; what is skipped, refused and kept."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from filelock import FileLock

from harness.analysis.tables import read_tables
from harness.composition import expand
from harness.config import EngineKind, Invocation
from harness.core.errors import ConfigError, EngineError, TelemetryError
from harness.diagnosis.verdicts import Verdict
from harness.experiments.isolation import WRITER_LOCK, Outcome, RunProcesses
from harness.experiments.runner import DONE, Runner, read_recording
from harness.experiments.session import report_module, run_experiment
from tests.experiments.conftest import CACHE, ECHO

Points = Callable[..., list[Invocation]]


def _quiet(_: object) -> None:
    """Nobody watches."""


def _runner(point: Invocation, **options: bool) -> Runner:
    return Runner(point.paths, RunProcesses(EngineKind.echo), **options)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the cliff's whole grid left."""
    directory = tmp_path_factory.mktemp("results")
    paths = (f"paths.results_dir={directory}", f"paths.cache_dir={CACHE}")
    assert run_experiment(expand([*ECHO, *paths])) == 0
    return directory


def test_an_experiment_leaves_runs_tables_and_a_figure(results: Path) -> None:
    tables = read_tables(results, "cliff")
    assert tables[""]["verdict"].tolist() == ["alive", "alive"]
    assert tables[""]["schedule_digest"].nunique() == 1
    assert tables[""]["evidence"].unique().tolist() == ["none"]
    assert len(tables["frames"]) == 2 * 8 * 5
    for suffix in ("png", "pdf"):
        assert (results / "figures" / f"cliff.{suffix}").stat().st_size > 10_000


def test_a_finished_run_is_not_run_again_unless_asked(echo_points: Points) -> None:
    point = echo_points("retention=unbounded")[0]
    first = _runner(point).run(point.run_config, _quiet)
    again = _runner(point).run(point.run_config, _quiet)
    forced = _runner(point, rerun=True).run(point.run_config, _quiet)
    assert [r.was_cached for r in (first, again, forced)] == [False, True, False]
    assert first.summary == again.summary
    assert forced.summary["schedule_digest"] == first.summary["schedule_digest"]


def test_a_run_without_done_is_started_anew_and_leaves_nothing_of_the_old(
    echo_points: Points,
) -> None:
    point = echo_points("retention=unbounded")[0]
    runner = _runner(point)
    directory = runner.directory(point.run_config)
    directory.mkdir(parents=True)
    (directory / "frames.parquet").write_bytes(b"half a file")
    (directory / "verdict.json").write_text('{"verdict": "alive"}')
    finished = runner.run(point.run_config, _quiet)
    assert not finished.was_cached
    assert (directory / DONE).exists()
    assert len(read_recording(directory).frames) == 40


def test_inputs_are_written_before_the_run(echo_points: Points) -> None:
    point = echo_points("retention=unbounded")[0]
    seen: list[set[str]] = []
    runner = _runner(point)
    directory = runner.directory(point.run_config)
    runner.run(point.run_config, lambda _: seen.append({p.name for p in directory.iterdir()}))
    assert {"config.yaml", "provenance.json", "schedule.parquet"} <= seen[0]
    assert DONE not in seen[0]
    origin = json.loads((directory / "provenance.json").read_text())
    assert origin["config"]["seed"] == 0
    assert origin["packages"]["numpy"]


def test_a_killed_run_process_becomes_a_verdict_and_is_tried_again(echo_points: Points) -> None:
    point = echo_points("retention=unbounded")[0]
    runner = _runner(point)
    directory = runner.directory(point.run_config)

    def kill(_: object) -> None:
        for pid in _run_processes():
            os.kill(pid, signal.SIGKILL)

    killed = runner.run(point.run_config, kill)
    assert killed.verdict is Verdict.never_served
    assert "killed by SIGKILL" in killed.summary["cause"]
    assert not (directory / DONE).exists()
    assert runner.run(point.run_config, _quiet).verdict is Verdict.alive


def test_a_run_that_did_not_end_by_itself_is_an_error_though_what_it_recorded_reads_well(
    echo_points: Points, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    points = echo_points("retention=unbounded")
    to_the_end = RunProcesses.run

    def stuck(*arguments: Any) -> Outcome:
        assert to_the_end(*arguments).reached_horizon
        return Outcome(reached_horizon=False, failure="the run's process stopped reporting")

    with monkeypatch.context() as patched:
        patched.setattr(RunProcesses, "run", stuck)
        assert run_experiment(points) == EngineError.exit_code
    said = capsys.readouterr().err
    assert said.startswith("error: alive: the run's process stopped reporting: what it recorded")
    assert run_experiment(points) == 0


def _run_processes() -> Iterator[int]:
    """Sessions that run processes have made for themselves, below this test's process."""
    import psutil

    for process in psutil.Process().children(recursive=True):
        if os.getpgid(process.pid) == process.pid:
            yield process.pid


def test_a_run_that_another_process_is_at_is_waited_for_and_read_back(echo_points: Points) -> None:
    point = echo_points("retention=unbounded")[0]
    first, second = _runner(point), _runner(point)
    waited: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        ours = pool.submit(first.run, point.run_config, _quiet)
        _wait_for(point.paths.results, "engine.log")
        theirs = pool.submit(second.run, point.run_config, lambda seen: waited.append(seen.phase))
    assert not ours.result().was_cached
    assert theirs.result().was_cached
    assert set(waited) == {"waiting for another process at this run"}
    assert ours.result().summary == theirs.result().summary


def test_ctrl_c_ends_the_wait_for_another_process(echo_points: Points) -> None:
    point = echo_points("retention=unbounded")[0]
    processes = RunProcesses(EngineKind.echo)
    runner = Runner(point.paths, processes)
    directory = runner.directory(point.run_config)
    directory.mkdir(parents=True)
    with FileLock(directory / ".lock"), pytest.raises(KeyboardInterrupt):
        runner.run(point.run_config, lambda _: processes.stop())


def test_a_results_directory_that_cannot_be_written_is_named(echo_points: Points) -> None:
    point = echo_points("retention=unbounded")[0]
    point.paths.results.write_text("a file stands where the directory should be")
    with pytest.raises(TelemetryError, match=r"choose another paths\.results_dir"):
        _runner(point).run(point.run_config, _quiet)


def _command(tmp_path: Path, *overrides: str) -> list[str]:
    paths = (f"paths.results_dir={tmp_path / 'results'}", f"paths.cache_dir={CACHE}")
    return [sys.executable, "-m", "harness", *ECHO, *paths, *overrides]


def test_ctrl_c_keeps_both_recordings_and_the_same_command_goes_on(tmp_path: Path) -> None:
    command = _command(tmp_path, "workload.duration_s=20", "num_parallel_runs=2")
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    directories = [path.parent for path in _wait_for(tmp_path, "engine.log", count=2)]
    time.sleep(3.0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted: finished runs are kept; the same command goes on" in errors
    assert "Traceback" not in errors
    for directory in directories:
        summary = json.loads((directory / "verdict.json").read_text())
        assert summary["verdict"] == "ended_early"
        assert not (directory / DONE).exists()
        assert read_recording(directory).frames["tokens"].sum() > 0


def test_a_killed_command_leaves_no_run_behind_and_the_next_one_finishes(tmp_path: Path) -> None:
    command = _command(tmp_path, "retention=unbounded", "workload.duration_s=60")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    directory = _wait_for(tmp_path, "engine.log")[0].parent
    time.sleep(3.0)
    process.kill()
    process.wait()
    # The run notices that nobody listens, writes what it has and ends.
    with FileLock(directory / WRITER_LOCK, timeout=20):
        assert read_recording(directory).events_of("interrupted").shape[0] == 1
    short = _command(tmp_path, "retention=unbounded")
    assert subprocess.run(short, capture_output=True).returncode == 0


def _wait_for(folder: Path, name: str, *, count: int = 1) -> list[Path]:
    for _ in range(1200):
        if len(found := list(folder.rglob(name))) >= count:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{name} did not appear {count} times")


@pytest.mark.parametrize(
    ("overrides", "code", "words"),
    [
        (["model=gpt"], 2, "error: model=gpt is unknown"),
        (["workload.corpora=[nowhere]"], 3, "error: corpus nowhere: "),
        (["engine.kv_pool_blocks=3"], 4, "error: engine.kv_pool_blocks=3 is below"),
        (["engine=vllm", "scale=full"], 2, "error: scale=full needs a CUDA device"),
    ],
)
def test_the_command_line_prints_one_line_and_writes_nothing(
    tmp_path: Path, overrides: list[str], code: int, words: str
) -> None:
    done = subprocess.run(_command(tmp_path, *overrides), capture_output=True, text=True)
    assert done.returncode == code
    assert done.stderr.startswith(words)
    assert done.stderr.count("\n") == 1
    assert not list((tmp_path / "results").rglob("*.parquet"))


def test_help_names_the_groups_and_exits_cleanly(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harness", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0
    for word in ("predict|reproduce|compare|audit -h", "experiment: cliff", "sink_window"):
        assert word in done.stdout


def test_a_module_that_tabulates_nothing_is_no_report() -> None:
    with pytest.raises(ConfigError, match=r"report=plan is no experiment: .*no tabulate\(runs\)"):
        report_module("plan")
    assert report_module("calibrate")


def test_tables_hold_every_run_of_the_grid(results: Path) -> None:
    table = pd.read_parquet(results / "tables" / "cliff.parquet")
    assert sorted(table["retention_kind"]) == ["sink_window", "unbounded"]
    assert (table["frames_answered"] == table["frames_offered"]).all()
