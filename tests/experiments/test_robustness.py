"""Killed anywhere, started twice, out of disk: no half file, and the next call mends it."""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from harness.composition import expand
from harness.core.errors import TelemetryError
from harness.core.files import write_json
from harness.experiments.runner import DONE
from harness.experiments.session import run_experiment
from harness.reproduce.command import judge_claims
from tests.experiments.conftest import CACHE, PATIENT

SHORT = (
    "engine=echo",
    "model.frame_budget_s=0.1",
    "workload.duration_s=1",
    "workload.num_sessions=2",
    "retention=unbounded",
    *PATIENT,
)
# Dies as the file of that name is about to be put in place.
DIES_AT = """
import os, pathlib, signal, sys
stage, put_in_place = sys.argv.pop(1), pathlib.Path.replace
def replace(self, target):
    if target.name == stage:
        os.kill(os.getpid(), signal.SIGKILL)
    return put_in_place(self, target)
pathlib.Path.replace = replace
sys.argv[0] = "harness"
from harness.__main__ import main
main()
"""


def _overrides(results: Path) -> list[str]:
    return [*SHORT, f"paths.results_dir={results}", f"paths.cache_dir={CACHE}"]


def _experiment(results: Path) -> int:
    return run_experiment(expand(_overrides(results)), Console(quiet=True))


def _ledger(results: Path) -> None:
    judge_claims(results, Console(quiet=True))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one run, its tables, its figure and a ledger leave."""
    results = tmp_path_factory.mktemp("finished") / "results"
    assert _experiment(results) == 0
    _ledger(results)
    return results


def _assert_whole(results: Path) -> None:
    """Every file under a final name can be read to its end."""
    for path in results.rglob("*"):
        if path.name.startswith(".") or path.is_dir():
            continue
        if path.suffix == ".parquet":
            pd.read_parquet(path)
        if path.suffix == ".pdf":
            assert path.read_bytes().rstrip().endswith(b"%%EOF")
        if path.suffix == ".png":
            assert path.read_bytes().endswith(b"IEND\xaeB`\x82")
        if path.suffix == ".json":
            pd.read_json(path, typ="series")


def _names(results: Path) -> set[str]:
    files = (path for path in results.rglob("*") if path.is_file())
    return {str(p.relative_to(results)) for p in files if not p.name.startswith(".")}


@pytest.mark.parametrize(
    ("stage", "work"),
    [
        ("cliff.frames.parquet", _experiment),
        ("cliff.parquet", _experiment),
        ("cliff.pdf", _experiment),
        ("cliff.png", _experiment),
        ("claims.json", _ledger),
        ("CLAIMS.md", _ledger),
    ],
)
def test_killed_in_tables_figure_or_ledger_the_next_call_finishes(
    finished: Path, tmp_path: Path, stage: str, work: Callable[[Path], object]
) -> None:
    results = tmp_path / "results"
    shutil.copytree(finished, results)
    _killed_at(stage, lambda: work(results))
    _assert_whole(results)
    assert ("tables/cliff.parquet" in _names(results)) == (not stage.endswith(".parquet"))
    work(results)
    assert _names(results) == _names(finished)
    for name in _names(finished):
        if not name.startswith("runs/"):
            # Messages in the ledger name the folder.
            ours, theirs = ((folder / name).read_bytes() for folder in (results, finished))
            assert ours.replace(bytes(results), bytes(finished)) == theirs, name


def _killed_at(name: str, work: Callable[[], object]) -> None:
    """Do the work in a fork that is killed as a file is about to get its final name."""
    pid = os.fork()
    if pid == 0:
        put_in_place = Path.replace

        def replace(self: Path, target: Path) -> Path:
            if target.name == name:
                os.kill(os.getpid(), signal.SIGKILL)
            return put_in_place(self, target)

        Path.replace = replace  # type: ignore[method-assign, assignment]
        try:
            work()
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL


@pytest.mark.parametrize("stage", ["schedule.parquet", DONE])
def test_killed_before_or_after_the_run_itself_the_next_call_finishes(
    finished: Path, tmp_path: Path, stage: str
) -> None:
    results = tmp_path / "results"
    killed = subprocess.run(
        [sys.executable, "-c", DIES_AT, stage, *_overrides(results)], capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL
    _assert_whole(results)
    assert not any(name.endswith(DONE) for name in _names(results))
    assert _experiment(results) == 0
    assert _names(results) == _names(finished) - {"claims.json", "CLAIMS.md"}
    assert len(pd.read_parquet(results / "tables" / "cliff.parquet")) == 1


def test_two_equal_commands_at_once_yield_one_set_of_runs(finished: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    command = [sys.executable, "-m", "harness", *_overrides(results)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum(words.count("(already finished)") for words in said) == 1
    assert _names(results) == _names(finished) - {"claims.json", "CLAIMS.md"}
    _assert_whole(results)


@pytest.mark.parametrize(
    ("largest_file_bytes", "refused"), [(8_000, "frames.parquet"), (15_000, "cliff.parquet")]
)
def test_a_disk_that_refuses_a_write_is_one_line_and_half_a_file_nowhere(
    tmp_path: Path, largest_file_bytes: int, refused: str
) -> None:
    """Refused by a limit on the size of a file, which the run's process inherits."""
    results = tmp_path / "results"
    limit = (largest_file_bytes, largest_file_bytes)
    done = subprocess.run(
        [sys.executable, "-m", "harness", *_overrides(results)],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    )
    assert done.returncode == TelemetryError.exit_code
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: cannot write ")
    # The run's own verdict says it, where the run could not write.
    words = rf"cannot write \S+/{refused}: .*File too large: choose another paths\.results_dir"
    assert re.search(words, done.stdout + done.stderr)
    _assert_whole(results)
    assert not any(name.endswith(f"/{refused}") for name in _names(results))
    assert not list(results.rglob("*.partial"))
    assert _experiment(results) == 0


def test_tables_that_cannot_be_written_leave_the_old_ones(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "results"
    shutil.copytree(finished, results)
    before = {name: (results / name).read_bytes() for name in _names(results)}

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_parquet", full)
    with pytest.raises(TelemetryError, match=r"cannot write .*: No space left on device"):
        _experiment(results)
    assert {name: (results / name).read_bytes() for name in _names(results)} == before


def test_a_read_only_directory_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "write_text", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(TelemetryError, match=r"cannot write .*x\.json: Read-only file system"):
        write_json(tmp_path / "x.json", {})
