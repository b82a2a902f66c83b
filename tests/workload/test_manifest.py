"""Manifests: the shipped ones are complete, and a wrong one is refused by the key that is wrong."""

from pathlib import Path

import pytest
import yaml

from harness.core.errors import CorpusError
from harness.workload.manifest import (
    ClipKind,
    CorpusManifest,
    HubSource,
    SdistSource,
    load_manifest,
    load_manifests,
)

SHIPPED = Path(__file__).resolve().parents[2] / "audio_corpora"

GOOD = {
    "corpus": "good",
    "title": "A title",
    "sdist": {"package": "p", "version": "1.0", "filename": "p-1.0.tar.gz", "sha256": "a" * 64},
    "licence": "CC0-1.0",
    "attribution": "nobody",
    "language": "en",
    "kind": "read",
    "sample_rate_hz": 16000,
    "clips": [
        {"clip_id": "one", "member": "p-1.0/one.wav", "sha256": "b" * 64, "duration_s": 2},
        {"clip_id": "two", "member": "p-1.0/two.wav", "sha256": "c" * 64, "duration_s": 3.5},
    ],
}
HUB = {"dataset": "o/d", "config": "c", "split": "test", "revision": "abc", "num_clips": 3}


def load(tmp_path: Path, document: object, name: str = "good") -> CorpusManifest:
    path = tmp_path / f"{name}.yaml"
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return load_manifest(path)


def with_clip(**changes: object) -> dict:
    return GOOD | {"clips": [GOOD["clips"][0] | changes, GOOD["clips"][1]]}


def without(document: dict, key: str) -> dict:
    return {name: value for name, value in document.items() if name != key}


@pytest.mark.parametrize(
    ("corpus", "num_clips", "duration_s"),
    [("ami_excerpts", 14, 420.0), ("librivox", 5, 24.7), ("silero_vad", 2, 229.2)],
)
def test_shipped_archive_corpora_pin_every_clip(
    corpus: str, num_clips: int, duration_s: float
) -> None:
    manifest = load_manifests(SHIPPED)[corpus]
    assert isinstance(manifest.source, SdistSource)
    assert len(manifest.clips) == num_clips
    assert sum(clip.duration_s for clip in manifest.clips) == pytest.approx(duration_s, abs=0.1)
    assert {clip.sample_rate_hz for clip in manifest.clips} == {16000}
    assert {clip.language for clip in manifest.clips} == {"en"}
    prefix = manifest.source.filename.removesuffix(".tar.gz") + "/"
    assert all(clip.member.startswith(prefix) for clip in manifest.clips)


def test_shipped_clip_ids_are_unique_over_all_corpora() -> None:
    ids = [clip.clip_id for each in load_manifests(SHIPPED).values() for clip in each.clips]
    assert len(ids) == len(set(ids)) == 21


def test_shipped_librispeech_is_pinned_to_a_commit() -> None:
    source = load_manifests(SHIPPED)["librispeech"].source
    assert isinstance(source, HubSource)
    assert len(source.revision) == 40
    assert source.num_clips > 0


def test_readme_names_every_shipped_corpus() -> None:
    readme = (SHIPPED / "README.md").read_text()
    assert all(f"`{name}`" in readme for name in load_manifests(SHIPPED))


def test_a_clip_states_only_what_differs_from_its_corpus(tmp_path: Path) -> None:
    first, second = load(tmp_path, with_clip(licence="MIT", kind="talk")).clips
    assert (first.licence, first.kind, first.language) == ("MIT", ClipKind.talk, "en")
    assert (second.licence, second.kind, second.duration_s) == ("CC0-1.0", ClipKind.read, 3.5)


def test_digest_follows_the_content_and_not_the_comments(tmp_path: Path) -> None:
    plain = load(tmp_path, GOOD)
    assert load(tmp_path, "# a comment\n" + yaml.safe_dump(GOOD)).digest == plain.digest
    assert load(tmp_path, with_clip(sha256="d" * 64)).digest != plain.digest


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        (GOOD | {"license": "MIT"}, "unknown key license"),
        (GOOD | {"hub_dataset": HUB}, "unknown key clips, sdist"),
        (with_clip(gain=2), "clips entry 1: unknown key gain"),
        (GOOD | {"sdist": GOOD["sdist"] | {"url": "x"}}, "sdist: unknown key url"),
        (without(GOOD, "licence"), "licence is missing"),
        (without(GOOD, "title"), "title is missing"),
        (without(GOOD, "sdist"), "sdist is missing"),
        (without(GOOD, "clips"), "clips is missing"),
        (GOOD | {"sdist": without(GOOD["sdist"], "sha256")}, "sdist: sha256 is missing"),
        (with_clip(sha256="b" * 63), "must be 64 lower-case hexadecimal digits"),
        (with_clip(sha256="c" * 64), "stands 2 times"),
        (with_clip(clip_id="two"), "clip_id=two stands 2 times"),
        (with_clip(clip_id="../two"), "clip_id='../two' must be made of letters"),
        (with_clip(duration_s=0), "duration_s=0 must be a number above 0"),
        (with_clip(duration_s=float("nan")), "duration_s=nan must be a number above 0"),
        (with_clip(kind="song"), "kind='song' must be one of meeting, read"),
        (GOOD | {"clips": []}, "clips=[] must be a list with at least one entry"),
        (GOOD | {"sample_rate_hz": 16000.0}, "must be a whole number"),
        (GOOD | {"sample_rate_hz": True}, "must be a whole number"),
        (GOOD | {"sdist": GOOD["sdist"] | {"version": 1.0}}, "put it in quotes"),
        (GOOD | {"corpus": "better"}, "corpus=better is not the file's name"),
        (["a", "list"], "not a mapping"),
        ("{broken", "cannot be read"),
        ("", "is None, not a mapping"),
    ],
)
def test_a_wrong_manifest_is_refused_in_one_line_that_names_the_key(
    tmp_path: Path, document: object, complaint: str
) -> None:
    with pytest.raises(CorpusError) as refusal:
        load(tmp_path, document)
    message = str(refusal.value)
    assert message.startswith("manifest good.yaml: ")
    assert complaint in message
    assert "\n" not in message


def test_a_directory_without_manifests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="holds no manifest"):
        load_manifests(tmp_path)
