"""From one recording as its source holds it to one clip of the cache."""

import hashlib
from dataclasses import dataclass

from harness.core.errors import CorpusError
from harness.workload.audio import decode_clip, write_pcm16
from harness.workload.cache import CachedClip, CorpusCache, publish, sha256_of


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One recording, and what its manifest says of it.

    data: the file, byte for byte.
    source: the release it came in and its name there.
    sha256: of `data` as pinned by the manifest; None where a revision pins it.
    sample_rate_hz, duration_s: None where the manifest does not say.
    question, answers: what is asked in it, and what is right; None and none where nothing is.
    """

    corpus: str
    clip_id: str
    data: bytes
    source: str
    sha256: str | None
    sample_rate_hz: int | None
    duration_s: float | None
    language: str
    kind: str
    licence: str
    question: str | None = None
    answers: tuple[str, ...] = ()


def store_recording(recording: Recording, cache: CorpusCache) -> CachedClip:
    """Check a recording against its manifest and keep it as 16-bit mono at its own rate.

    Raises: CorpusError if hash, rate or length differ, or the audio is unusable.
    """
    name = f"{recording.corpus}/{recording.clip_id}"
    found_sha256 = hashlib.sha256(recording.data).hexdigest()
    if recording.sha256 not in (None, found_sha256):
        raise _differs(name, recording, "sha256", found_sha256, recording.sha256)
    samples, rate_hz = decode_clip(recording.data, name=name)
    if recording.sample_rate_hz not in (None, rate_hz):
        raise _differs(name, recording, "sample_rate_hz", rate_hz, recording.sample_rate_hz)
    duration_s = samples.size / rate_hz
    if recording.duration_s is not None and abs(duration_s - recording.duration_s) > 1e-3:
        raise _differs(name, recording, "duration_s", duration_s, recording.duration_s)
    path = cache.clip(recording.corpus, recording.clip_id)
    with publish(path) as partial:
        write_pcm16(partial, samples, rate_hz)
        file_sha256 = sha256_of(partial)
    assert file_sha256 is not None
    return CachedClip(
        corpus=recording.corpus,
        clip_id=recording.clip_id,
        file=path.relative_to(cache.directory).as_posix(),
        file_sha256=file_sha256,
        sample_rate_hz=rate_hz,
        duration_s=duration_s,
        language=recording.language,
        kind=recording.kind,
        licence=recording.licence,
        source=recording.source,
        sha256=found_sha256,
        question=recording.question,
        answers=recording.answers,
    )


def _differs(
    name: str, recording: Recording, fact: str, found: object, stated: object
) -> CorpusError:
    return CorpusError(
        f"clip {name}: {fact}={found} of {recording.source} is not the manifest's {stated}: "
        f"correct audio_corpora/{recording.corpus}.yaml"
    )
