"""Passages of text out of an archive made on the spot, and the manifest that ships."""

import hashlib
from pathlib import Path

import pytest
import yaml

from harness.core.errors import CorpusError
from harness.workload.texts import TextManifest, load_text_manifest, passages
from tests.workload.stand_ins import sdist_bytes

SHIPPED = Path(__file__).resolve().parents[2] / "audio_corpora" / "texts" / "books.yaml"
WORK = b"Title\n\n  Once upon\n\ta time  there was\nan end."


def manifest(tmp_path: Path, **changes: object) -> TextManifest:
    work = {
        "member": "small-1.0/book.txt",
        "title": "A Book",
        "sha256": hashlib.sha256(WORK).hexdigest(),
        "passages": [{"text_id": "once", "begins": "Once upon a time"}],
    } | changes
    document = {
        "corpus": "small",
        "title": "Small",
        "sdist": {
            "package": "small",
            "version": "1.0",
            "filename": "small-1.0.tar.gz",
            "sha256": "0" * 64,
        },
        "licence": "CC0-1.0",
        "attribution": "nobody",
        "language": "en",
        "works": [work],
    }
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(document))
    return load_text_manifest(path)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "small-1.0.tar.gz"
    path.write_bytes(sdist_bytes({"small-1.0/book.txt": WORK}))
    return path


def test_a_passage_runs_from_its_first_words_to_the_end_with_white_space_folded(
    tmp_path: Path, archive: Path
) -> None:
    assert passages(manifest(tmp_path), archive) == {"once": "Once upon a time there was an end."}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sha256": "1" * 64}, "is not the manifest's"),
        ({"member": "small-1.0/none.txt"}, "has no small-1.0/none.txt"),
        ({"passages": [{"text_id": "once", "begins": "Twice"}]}, "does not hold begins='Twice'"),
        ({"passages": [{"text_id": "a", "begins": "O"}] * 2}, "text_id=a stands more than once"),
        ({"pages": 3}, "unknown key pages"),
    ],
)
def test_a_text_that_is_not_what_the_manifest_says_is_named(
    tmp_path: Path, archive: Path, changes: dict, words: str
) -> None:
    with pytest.raises(CorpusError, match=words):
        passages(manifest(tmp_path, **changes), archive)


def test_the_shipped_manifest_holds_at_least_six_texts_with_licence_and_source() -> None:
    shipped = load_text_manifest(SHIPPED)
    assert len(shipped.text_ids) >= 6
    assert shipped.licence
    assert shipped.attribution
    assert len(shipped.source.sha256) == 64
