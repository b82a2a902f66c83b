"""One audio file in, mono float samples out: decoding, checking, down-mixing, resampling.

Silence, stereo and other sample rates are fit for use after a warning or a conversion; everything
else that is wrong with a clip is an error that names it.
"""

import io
import warnings
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import soundfile

from harness.core.errors import CorpusError, HarnessWarning

Samples: TypeAlias = npt.NDArray[np.float32]

SILENCE_PEAK = 1e-3
"""Largest magnitude, of a full scale of 1, that still counts as silence: -60 dBFS."""


def read_clip(path: Path, *, sample_rate_hz: int | None = None) -> tuple[Samples, int]:
    """Read one file as mono samples of shape (num_samples,) in -1..1, and their rate in Hz.

    sample_rate_hz: rate to convert to; None keeps the file's own.

    Raises: CorpusError if the file is missing, corrupt or empty, or holds NaN or infinity.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CorpusError(
            f"clip {path}: cannot be read ({error.strerror}): run `make corpora`"
        ) from error
    return decode_clip(data, name=str(path), sample_rate_hz=sample_rate_hz)


def decode_clip(
    data: bytes, *, name: str, sample_rate_hz: int | None = None
) -> tuple[Samples, int]:
    """Decode the bytes of one file; as `read_clip`, with `name` for messages."""
    try:
        decoded, rate_hz = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
    except (soundfile.SoundFileError, ValueError) as error:
        reason = str(error).rstrip(".")
        raise CorpusError(
            f"clip {name}: {len(data)} bytes cannot be decoded as audio ({reason}): "
            "replace the file"
        ) from error
    samples: Samples = decoded.mean(axis=1, dtype=np.float32)
    _check(samples, name, rate_hz)
    if sample_rate_hz is not None and sample_rate_hz != rate_hz:
        samples, rate_hz = resample(samples, rate_hz, sample_rate_hz), sample_rate_hz
    return samples, rate_hz


def resample(samples: Samples, from_hz: int, to_hz: int) -> Samples:
    """The same sound at another rate, by soxr's high-quality band-limited filter."""
    # Imported here: librosa pulls numba, and a run with a warm cache never resamples.
    import librosa

    converted = librosa.resample(samples, orig_sr=from_hz, target_sr=to_hz, res_type="soxr_hq")
    return np.ascontiguousarray(converted, dtype=np.float32)


def write_pcm16(path: Path, samples: Samples, sample_rate_hz: int) -> None:
    """Write mono samples as a 16-bit WAV file; what exceeds full scale is clipped."""
    with path.open("wb") as sink:
        soundfile.write(sink, samples, sample_rate_hz, format="WAV", subtype="PCM_16")


def _check(samples: Samples, name: str, rate_hz: int) -> None:
    if samples.size == 0:
        raise CorpusError(f"clip {name}: holds 0 samples: replace the file or drop the clip")
    broken = np.flatnonzero(~np.isfinite(samples))
    if broken.size:
        raise CorpusError(
            f"clip {name}: {broken.size} of {samples.size} samples are NaN or infinite, the first "
            f"at {broken[0] / rate_hz:.3f} s: replace the file or drop the clip"
        )
    peak = float(np.abs(samples).max())
    if peak < SILENCE_PEAK:
        warnings.warn(
            f"clip {name}: silent throughout (peak {peak:.1e}, below {SILENCE_PEAK:.0e}): "
            "kept as a pause; drop the clip if speech was expected",
            HarnessWarning,
            stacklevel=3,
        )
