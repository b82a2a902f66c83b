"""Clips as the replay uses them: from the cache, at the model's sample rate."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.core.errors import CorpusError
from harness.workload.audio import Samples, decode_clip, read_clip, resample
from harness.workload.cache import CachedClip, CorpusCache, publish

__all__ = ["Clip", "load_corpus", "read_clip"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Clip:
    """One recording, ready to be cut into frames.

    samples: float32, shape (num_samples,), read-only.
    """

    corpus: str
    clip_id: str
    sample_rate_hz: int
    samples: Samples

    @property
    def duration_s(self) -> float:
        """Length of the recording."""
        return self.samples.size / self.sample_rate_hz


def load_corpus(names: Sequence[str], *, cache_dir: Path, sample_rate_hz: int) -> list[Clip]:
    """Every clip of the named corpora, in the order of `names` and then of the clips' ids.

    Works without a network. A clip at another rate is converted the first time it is asked for.

    Raises: CorpusError if a corpus is not in the cache, or a clip is not what was put there.
    """
    if not names:
        raise CorpusError("no corpus is named: name at least one of audio_corpora/")
    cache = CorpusCache(cache_dir)
    clips = []
    for name in dict.fromkeys(names):
        stored = cache.clips_of(name)
        if stored is None:
            raise CorpusError(
                f"corpus {name}: not in {cache_dir}, which holds "
                f"{', '.join(cache.corpora()) or 'no corpus'}: run `make corpora`, or "
                f"`python scripts/fetch_corpora.py {name}` if it is not fetched by default"
            )
        for clip in sorted(stored, key=lambda clip: clip.clip_id):
            samples = _samples(cache, clip, sample_rate_hz)
            samples.flags.writeable = False
            clips.append(
                Clip(
                    corpus=name,
                    clip_id=clip.clip_id,
                    sample_rate_hz=sample_rate_hz,
                    samples=samples,
                )
            )
    return clips


def _samples(cache: CorpusCache, clip: CachedClip, sample_rate_hz: int) -> Samples:
    if clip.sample_rate_hz == sample_rate_hz:
        return _own_rate(cache, clip)
    path = cache.resampled(clip, sample_rate_hz)
    if path.is_file():
        return _load_resampled(path)
    samples = resample(_own_rate(cache, clip), clip.sample_rate_hz, sample_rate_hz)
    with publish(path) as partial, partial.open("wb") as sink:
        np.save(sink, samples)
    return samples


def _own_rate(cache: CorpusCache, clip: CachedClip) -> Samples:
    path = cache.directory / clip.file
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CorpusError(
            f"clip {clip.corpus}/{clip.clip_id}: {path} cannot be read ({error.strerror}): "
            "run `make corpora`"
        ) from error
    found = hashlib.sha256(data).hexdigest()
    if found != clip.file_sha256:
        raise CorpusError(
            f"clip {clip.corpus}/{clip.clip_id}: {path} has sha256={found}, not {clip.file_sha256} "
            "as when it was fetched: run `make corpora`"
        )
    return decode_clip(data, name=f"{clip.corpus}/{clip.clip_id}")[0]


def _load_resampled(path: Path) -> Samples:
    try:
        loaded = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise CorpusError(
            f"{path}: is damaged ({error}): delete it, it will be made anew"
        ) from error
    return np.asarray(loaded, dtype=np.float32)
