"""The texts that a model which is no probe is told, in its own tokens."""

import dataclasses
import json
from pathlib import Path

import pytest

from harness.composition import compose
from harness.core.errors import ConfigError, CorpusError
from harness.models.tiny import ensure_tiny_checkpoint
from harness.workload import told
from harness.workload.told import check_is_told, told_texts

CACHE = Path(__file__).resolve().parents[2] / ".cache"
RUN = compose(
    [
        "experiment=sinks",
        "model=qwen3_omni",
        "scale=tiny",
        "workload.num_sessions=2",
        "workload.duration_s=8",
    ]
).run_config


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    works = {"a": "The quick brown fox. " * 40, "b": "b" * 500, "c": "c" * 500}
    monkeypatch.setattr(told, "_heads", lambda cache, length: works)
    return works


def test_every_session_is_told_a_text_as_long_as_the_run(texts: dict[str, str]) -> None:
    checkpoint = str(ensure_tiny_checkpoint("qwen3_omni", CACHE))
    found = told_texts(RUN, checkpoint, CACHE)
    assert list(found) == ["a", "b"]
    assert [len(ids) for ids in found.values()] == [4 * 28] * 2
    assert len(set(found["b"])) == 1


def test_a_text_that_is_too_short_and_a_session_without_one_are_refused(
    texts: dict[str, str],
) -> None:
    checkpoint = str(ensure_tiny_checkpoint("qwen3_omni", CACHE))
    longer = dataclasses.replace(RUN.workload, duration_s=60.0)
    with pytest.raises(ConfigError, match=r"text b has 500 tokens, fewer than the 840"):
        told_texts(dataclasses.replace(RUN, workload=longer), checkpoint, CACHE)
    more = dataclasses.replace(RUN.workload, num_sessions=4)
    with pytest.raises(ConfigError, match=r"num_sessions=4 is over the 3 texts"):
        told_texts(dataclasses.replace(RUN, workload=more), checkpoint, CACHE)


def test_a_probes_texts_are_those_of_its_checkpoint(tmp_path: Path) -> None:
    run = compose(["experiment=sinks", "workload.num_sessions=1", "workload.duration_s=8"])
    (tmp_path / "texts.json").write_text(json.dumps({"x": list(range(200))}))
    assert told_texts(run.run_config, str(tmp_path), tmp_path) == {"x": list(range(128))}


def test_texts_that_were_not_fetched_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"is not there: run `make probe`"):
        told_texts(RUN, str(ensure_tiny_checkpoint("qwen3_omni", CACHE)), tmp_path)


def test_moshi_cannot_be_told_a_text() -> None:
    with pytest.raises(ConfigError, match=r"model=moshi cannot be told a text"):
        check_is_told(compose(["model=moshi"]).model)
    check_is_told(RUN.model)
