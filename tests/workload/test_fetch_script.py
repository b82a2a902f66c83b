"""scripts/fetch_corpora.py as a user sees it, on a corpus whose archive was put there by hand."""

import importlib.util
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.workload.stand_ins import Sdist
from tests.workload.test_spoken import SHIPPED, TTS

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "fetch_corpora.py"


@pytest.fixture
def script(
    tmp_path: Path, make_sdist: Callable[..., Sdist], monkeypatch: pytest.MonkeyPatch
) -> ModuleType:
    sdist = make_sdist()
    root = tmp_path / "root"
    (root / "audio_corpora").mkdir(parents=True)
    (tmp_path / "small.yaml").rename(root / "audio_corpora" / "small.yaml")
    archive = root / ".cache" / "corpora" / "archives" / "small-1.0.tar.gz"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(sdist.archive)
    spec = importlib.util.spec_from_file_location("fetch_corpora_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", root)
    monkeypatch.setattr(sys, "argv", ["fetch_corpora.py"])
    monkeypatch.setenv("COLUMNS", "200")
    return module


def test_first_run_fetches_and_second_run_says_that_there_is_nothing_to_do(
    script: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script.main() == 0
    first = capsys.readouterr().out
    assert "fetched" in first
    assert "CC0-1.0" in first
    assert "Nothing to do" not in first
    assert script.main() == 0
    second = capsys.readouterr().out
    assert "in place" in second
    assert "Nothing to do" in second


def test_an_unknown_corpus_is_one_line_on_stderr_and_exit_code_3(
    script: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["fetch_corpora.py", "nope"])
    assert script.main() == 3
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == "error: corpus nope: audio_corpora/ has no nope.yaml: choose from small\n"


def test_a_program_of_the_users_own_speaks_the_questions(
    script: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(SHIPPED / "spoken_questions.yaml", script.ROOT / "audio_corpora")
    monkeypatch.setattr(sys, "argv", ["fetch_corpora.py", "spoken_questions", "--tts", TTS])
    assert script.main() == 0
    assert "22050  question" in capsys.readouterr().out
    # Named with the others it is not: it needs a voice.
    monkeypatch.setattr(sys, "argv", ["fetch_corpora.py"])
    assert script.main() == 0
    assert "spoken_questions" not in capsys.readouterr().out


def test_a_folder_of_the_users_own_must_hold_every_question(
    script: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(SHIPPED / "spoken_questions.yaml", script.ROOT / "audio_corpora")
    asked = ["fetch_corpora.py", "spoken_questions", "--folder", str(script.ROOT)]
    monkeypatch.setattr(sys, "argv", asked)
    assert script.main() == 3
    assert "has no file france, week" in capsys.readouterr().err
