"""Mimi on the client: a caller's audio to codes, frame by frame, and codes to speech.

Kyutai's codec as transformers has it. Its state belongs to a call and is bounded: a few samples of
padding a convolution, and the last 250 positions of its transformer.
Leans on transformers 5.19, `MimiModel.encode(use_streaming=True)`. Decoding is done for a whole
call at once, since `MimiModel.decode` keeps no state of its convolutions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile
import torch
from transformers import MimiModel

from harness.core.errors import ConfigError

HUB_NAME = "kyutai/mimi"
# Where a checkpoint directory that brings its own codec has it.
CODEC_DIRECTORY = "mimi"
SAMPLE_RATE_HZ = 24_000
FRAME_SAMPLES = 1920


class Mimi:
    """One codec for all calls.

    source: directory or hub name of a Mimi checkpoint.
    num_codebooks: how many of its codebooks are used, from the first.

    Raises: ConfigError if it is not a codec of 24 kHz and 12.5 frames a second.
    """

    def __init__(self, source: str | Path, *, num_codebooks: int) -> None:
        self._model = MimiModel.from_pretrained(str(source)).eval()
        self._num_codebooks = num_codebooks
        found = (self._model.config.sampling_rate, self._model.config.frame_size)
        if found != (SAMPLE_RATE_HZ, FRAME_SAMPLES):
            raise ConfigError(
                f"{source} codes {found[1]} samples a frame at {found[0]} Hz, not {FRAME_SAMPLES} "
                f"at {SAMPLE_RATE_HZ}: use {HUB_NAME}"
            )

    def open_call(self) -> MimiEncoder:
        """The encoder of a new call."""
        return MimiEncoder(self._model, self._num_codebooks)

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def decode(self, frames: Sequence[Sequence[int]]) -> npt.NDArray[np.float32]:
        """Speech, (num_frames * FRAME_SAMPLES,), from the codes of each frame."""
        if not frames:
            return np.zeros(0, np.float32)
        codes = torch.tensor(frames).T[None]
        speech: npt.NDArray[np.float32] = self._model.decode(codes).audio_values[0, 0].numpy()
        return speech


class MimiEncoder:
    """A call's audio, one frame after the other."""

    def __init__(self, model: MimiModel, num_codebooks: int) -> None:
        self._model = model
        self._num_codebooks = num_codebooks
        self._attention = None
        self._padding = None

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def encode(self, audio: npt.NDArray[np.float32]) -> list[int]:
        """The frame's codes, one a codebook; audio (FRAME_SAMPLES,)."""
        # The corpus hands out read-only views, which torch does not take.
        samples = torch.from_numpy(np.array(audio, dtype=np.float32))
        coded = self._model.encode(
            samples[None, None],
            num_quantizers=self._num_codebooks,
            encoder_past_key_values=self._attention,
            padding_cache=self._padding,
            use_streaming=True,
        )
        self._attention = coded.encoder_past_key_values
        self._padding = coded.padding_cache
        codes: list[int] = coded.audio_codes[0, :, 0].tolist()
        return codes


def write_speech(path: Path, samples: npt.NDArray[np.float32]) -> None:
    """Write speech as a 16-bit wav file that any player takes; louder than full scale is cut."""
    soundfile.write(path, np.clip(samples, -1.0, 1.0), SAMPLE_RATE_HZ, subtype="PCM_16")
