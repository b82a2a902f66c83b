"""Decoding one clip: what is converted, what is warned about, what is refused."""

from pathlib import Path

import numpy as np
import pytest

from harness.core.errors import CorpusError, HarnessWarning
from harness.workload.audio import read_clip, write_pcm16
from tests.workload.stand_ins import noise, wav_bytes


def with_sample(value: float) -> np.ndarray:
    samples = noise(16000)
    samples[8000] = value
    return samples


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "cannot be decoded"),
        (b"RIFF....WAVEnot a file", "cannot be decoded"),
        (wav_bytes(noise(16000))[:30], "cannot be decoded"),
        (wav_bytes(noise(16000), form="FLAC")[:9000], "cannot be decoded"),
        (wav_bytes(np.zeros(0, dtype=np.float32)), "holds 0 samples"),
        (wav_bytes(with_sample(np.nan), subtype="FLOAT"), "1 of 16000 samples are NaN or infinite"),
        (wav_bytes(with_sample(-np.inf), subtype="FLOAT"), "the first at 0.500 s"),
    ],
)
def test_unusable_audio_is_refused_in_one_line_that_names_the_file(
    tmp_path: Path, data: bytes, complaint: str
) -> None:
    path = tmp_path / "bad.wav"
    path.write_bytes(data)
    with pytest.raises(CorpusError) as refusal:
        read_clip(path)
    message = str(refusal.value)
    assert message.startswith(f"clip {path}: ")
    assert complaint in message
    assert "replace the file" in message
    assert "\n" not in message


def test_a_missing_file_is_refused_with_the_command_that_brings_it(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"gone.wav: cannot be read .*run `make corpora`"):
        read_clip(tmp_path / "gone.wav")


@pytest.mark.parametrize("peak", [0.0, 9e-4])
def test_a_silent_clip_is_kept_with_a_warning(tmp_path: Path, peak: float) -> None:
    path = tmp_path / "silent.wav"
    path.write_bytes(wav_bytes(np.full(16000, peak, dtype=np.float32)))
    with pytest.warns(HarnessWarning, match=r"silent.wav: silent throughout"):
        samples, _ = read_clip(path)
    assert samples.size == 16000


def test_a_quiet_clip_is_not_silent(tmp_path: Path) -> None:
    path = tmp_path / "quiet.wav"
    path.write_bytes(wav_bytes(np.full(16000, 2e-3, dtype=np.float32)))
    read_clip(path)


def test_stereo_is_mixed_to_the_mean_of_its_channels(tmp_path: Path) -> None:
    left, right = noise(16000, 1), noise(16000, 2)
    path = tmp_path / "stereo.wav"
    path.write_bytes(wav_bytes(np.stack([left, right], axis=1), subtype="FLOAT"))
    samples, rate_hz = read_clip(path)
    assert (samples.shape, samples.dtype, rate_hz) == ((16000,), np.float32, 16000)
    np.testing.assert_allclose(samples, (left + right) / 2, atol=1e-7)


@pytest.mark.parametrize(("from_hz", "to_hz"), [(8000, 16000), (16000, 24000), (44100, 16000)])
def test_another_rate_keeps_length_and_pitch(tmp_path: Path, from_hz: int, to_hz: int) -> None:
    tone_hz = 440
    path = tmp_path / "tone.wav"
    instants_s = np.arange(2 * from_hz) / from_hz
    path.write_bytes(wav_bytes(0.5 * np.sin(2 * np.pi * tone_hz * instants_s), from_hz))
    samples, rate_hz = read_clip(path, sample_rate_hz=to_hz)
    assert (rate_hz, samples.size, samples.dtype) == (to_hz, 2 * to_hz, np.float32)
    spectrum = np.abs(np.fft.rfft(samples))
    assert spectrum.argmax() / 2 == tone_hz  # two seconds make bins of half a hertz
    assert np.abs(samples).max() == pytest.approx(0.5, rel=0.02)


def test_stored_samples_are_16_bit_and_clipped_at_full_scale(tmp_path: Path) -> None:
    path = tmp_path / "loud.wav"
    write_pcm16(path, np.array([0.25, 1.5, -1.5], dtype=np.float32), 8000)
    samples, rate_hz = read_clip(path)
    assert rate_hz == 8000
    np.testing.assert_allclose(samples, [0.25, 1.0, -1.0], atol=2**-15)
