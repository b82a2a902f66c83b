"""LibriSpeech's way in: `datasets`, pinned and undecoded; one clear line without a network."""

from pathlib import Path

import datasets
import pytest

from harness.core.errors import CorpusError
from harness.workload.cache import CorpusCache
from harness.workload.corpus import load_corpus
from harness.workload.fetch import fetch_corpora
from harness.workload.manifest import CorpusManifest, load_manifest
from tests.workload.stand_ins import noise, refuse, wav_bytes

MANIFEST = """
corpus: spoken
title: A stand-in for LibriSpeech
hub_dataset: {dataset: org/speech, config: clean, split: test, revision: abc123, num_clips: 2}
licence: CC-BY-4.0
attribution: nobody
language: en
kind: read
sample_rate_hz: 16000
"""


@pytest.fixture
def manifest(tmp_path: Path) -> CorpusManifest:
    path = tmp_path / "spoken.yaml"
    path.write_text(MANIFEST)
    return load_manifest(path)


class Hub:
    """Serves a local dataset the way `datasets.load_dataset` would."""

    def __init__(self, num_clips: int) -> None:
        self.asked: list[tuple[tuple, dict]] = []
        flac = [wav_bytes(noise(1600, seed), form="FLAC") for seed in range(num_clips)]
        rows = [
            {"id": f"61-{seed}", "text": "words", "audio": {"bytes": data, "path": f"{seed}.flac"}}
            for seed, data in enumerate(flac)
        ]
        table = datasets.Dataset.from_list(rows).cast_column("audio", datasets.Audio(decode=False))
        # Decoding is what the real dataset asks for; the harness must turn it off.
        self._rows = table.to_iterable_dataset().cast_column("audio", datasets.Audio())

    def load_dataset(self, *arguments, **options):
        self.asked.append((arguments, options))
        return self._rows


def test_the_pinned_number_of_clips_is_streamed_from_the_pinned_revision(
    cache: CorpusCache, manifest: CorpusManifest
) -> None:
    hub = Hub(num_clips=5)
    fetch_corpora([manifest], cache, download=refuse, load_dataset=hub.load_dataset)
    assert hub.asked == [
        (("org/speech", "clean"), {"split": "test", "revision": "abc123", "streaming": True})
    ]
    clips = load_corpus(["spoken"], cache_dir=cache.directory, sample_rate_hz=16000)
    assert [clip.clip_id for clip in clips] == ["61-0", "61-1"]
    assert [clip.samples.size for clip in clips] == [1600, 1600]
    stored = cache.clips_of("spoken")
    assert stored is not None
    assert stored[0].source == "org/speech@abc123: 61-0"


def test_a_warm_cache_needs_no_hub(cache: CorpusCache, manifest: CorpusManifest) -> None:
    fetch_corpora([manifest], cache, load_dataset=Hub(num_clips=2).load_dataset)
    assert fetch_corpora([manifest], cache, load_dataset=refuse).new_corpora == ()


def test_without_a_network_one_line_names_the_dataset(
    cache: CorpusCache, manifest: CorpusManifest
) -> None:
    def unreachable(*_arguments, **_options):
        raise ConnectionError("Couldn't reach the hub\n(two lines of it)")

    with pytest.raises(CorpusError) as refusal:
        fetch_corpora([manifest], cache, load_dataset=unreachable)
    message = str(refusal.value)
    assert message.startswith(
        "dataset org/speech: the hub cannot be read (Couldn't reach the hub ("
    )
    assert "\n" not in message
    assert cache.corpora() == []


def test_a_stream_that_breaks_off_does_not_count(
    cache: CorpusCache, manifest: CorpusManifest
) -> None:
    class Broken:
        def cast_column(self, *_arguments):
            return self

        def take(self, _num_clips):
            yield {"id": "61-0", "audio": {"bytes": wav_bytes(noise(1600))}}
            raise TimeoutError("the line went dead")

    with pytest.raises(CorpusError, match="the line went dead"):
        fetch_corpora([manifest], cache, load_dataset=lambda *_a, **_o: Broken())
    assert cache.corpora() == []


def test_a_split_with_too_few_clips_is_refused(
    cache: CorpusCache, manifest: CorpusManifest
) -> None:
    with pytest.raises(CorpusError, match=r"has 1 clips, fewer than num_clips=2"):
        fetch_corpora([manifest], cache, load_dataset=Hub(num_clips=1).load_dataset)
    assert cache.corpora() == []
