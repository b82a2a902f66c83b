"""Making artifacts: nothing twice, past failures, and what is left is told."""

from pathlib import Path

import pytest
from rich.console import Console

from harness.experiments.runner import DONE
from harness.reproduce.board import Board, Fate
from harness.reproduce.command import main, reproduce
from harness.reproduce.made import is_made, read_stamp
from harness.reproduce.registry import Artifact
from tests.experiments.conftest import CACHE, ECHO


def artifact(name: str, *overrides: str, minutes: float = 1) -> Artifact:
    return Artifact(
        id=name,
        title=name,
        paper="none",
        evidence=("none",),
        read="",
        minutes=minutes,
        experiment="cliff",
        overrides=(*ECHO, f"paths.cache_dir={CACHE}", "retention=unbounded", *overrides),
    )


GOOD = artifact("good")
BAD = artifact("bad", "model.frame_budget_s=-1")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one good artifact left."""
    directory = tmp_path_factory.mktemp("results")
    assert reproduce([GOOD], directory, Console(quiet=True)) == 0
    return directory


def written(results: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in results.rglob("*") if path.is_file()}


def test_a_second_call_writes_nothing(results: Path) -> None:
    before = written(results)
    assert reproduce([GOOD], results, Console(quiet=True)) == 0
    changed = {path.name for path, time in written(results).items() if before.get(path) != time}
    # The page also shows the artifacts of the registry, which are not made here.
    assert changed <= {"index.html"}


def test_an_artifact_is_stale_without_a_run_a_table_or_with_other_overrides(results: Path) -> None:
    assert is_made(GOOD, results)
    assert not is_made(artifact("good", "seed=1"), results)
    made = read_stamp(GOOD, results)
    assert made is not None
    for path in (results / made.runs[0] / DONE, results / "tables" / "good.parquet"):
        content = path.read_bytes()
        path.unlink()
        assert not is_made(GOOD, results)
        path.write_bytes(content)
    assert is_made(GOOD, results)


def test_a_torn_stamp_is_no_stamp(results: Path) -> None:
    path = results / "tables" / "good.made.json"
    content = path.read_text()
    path.write_text(content[:-20])
    assert not is_made(GOOD, results)
    path.write_text(content)


def test_a_failing_artifact_is_named_and_does_not_stop_the_others(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduce([BAD, GOOD], results, Console(quiet=True)) == 1
    assert "error: artifact bad: model.frame_budget_s=-1" in capsys.readouterr().err
    assert read_stamp(BAD, results) is None
    assert is_made(GOOD, results)


def test_what_is_left_is_stretched_by_how_long_the_others_took() -> None:
    rows = [artifact("a", minutes=2), artifact("b", minutes=3), artifact("c", minutes=4)]
    with Board(rows, Console(quiet=True)) as board:
        assert board.minutes_left() == 9
        board.end(rows[0], Fate(seconds=60))
        assert board.minutes_left() == 3.5
        board.end(rows[1], Fate(was_made=True))
        assert board.minutes_left() == 2


def test_the_table_at_the_end_tells_made_failed_and_left_alone_apart() -> None:
    rows = [artifact("a"), artifact("b"), artifact("c")]
    with Board(rows, Console(quiet=True)) as board:
        board.end(rows[0], Fate(seconds=90, verdicts={"C1": "PARTLY"}))
        board.end(rows[1], Fate(failure="no pool"))
        board.end(rows[2], Fate(was_made=True))
    shown = Console(width=100)
    with shown.capture() as captured:
        shown.print(board.table())
    made, failed, left_alone = [line for line in captured.get().splitlines() if "│" in line]
    assert ("made" in made, "1.5" in made, "C1 PARTLY" in made) == (True, True, True)
    assert "failed" in failed
    assert "up to date" in left_alone


def test_an_unknown_artifact_and_one_without_a_full_version_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--only", "clif"]) != 0
    assert "--only=clif is unknown: choose cliff or" in capsys.readouterr().err
    assert main(["--scale", "full", "--only", "audit"]) != 0
    assert "--only=audit has no --scale=full version: choose cliff or" in capsys.readouterr().err
