"""What a command and its sweep answer to errors, to Ctrl-C and to jobs that run elsewhere."""

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import __main__, cli
from harness.core.errors import ConfigError

Sweep = Callable[[list[BaseException | None]], tuple[int, int]]


@pytest.fixture
def sweep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Sweep:
    """Run a sweep of two jobs that end as told; its exit code, and how many jobs began."""

    def run(endings: list[BaseException | None]) -> tuple[int, int]:
        waiting: Iterator[BaseException | None] = iter(endings)

        def job(_: object) -> int:
            ending = next(waiting)
            if ending is not None:
                raise ending
            return 0

        monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
        monkeypatch.setattr(cli, "run_experiment", job)
        monkeypatch.setattr(
            sys, "argv", ["harness", "-m", "seed=0,1", f"hydra.sweep.dir={tmp_path}"]
        )
        code = cli.main()
        return code, len(endings) - len(list(waiting))

    return run


def test_an_error_ends_its_job_and_not_the_others(
    sweep: Sweep, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sweep([ConfigError("seed=0 is odd"), None]) == (ConfigError.exit_code, 2)
    assert capsys.readouterr().err == "error: seed=0 is odd\n"


def test_ctrl_c_ends_the_whole_sweep(sweep: Sweep) -> None:
    assert sweep([KeyboardInterrupt(), None]) == (cli.INTERRUPTED, 1)


def test_the_exit_code_of_a_job_that_ran_elsewhere_comes_home(
    sweep: Sweep, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    places = (("here", number) for number in itertools.count())
    monkeypatch.setattr(cli, "_this_process", lambda: next(places))
    assert sweep([None, ConfigError("seed=1 is odd")]) == (ConfigError.exit_code, 2)
    assert "error: a job of the sweep failed on " in capsys.readouterr().err


def test_a_worker_that_does_not_see_the_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be entered on .* file system that all of them"):
        cli._run([], tmp_path / "absent")


def test_a_reader_that_leaves_early_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "harness", "--help"], stdout=writer, stderr=subprocess.PIPE
    )
    os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 141


def test_a_misspelt_command_is_named_with_the_one_that_is_meant(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["harness", "predit", "model=moshi"])
    assert __main__.main() == ConfigError.exit_code
    assert capsys.readouterr().err == "error: predit is no command: did you mean predict?\n"
