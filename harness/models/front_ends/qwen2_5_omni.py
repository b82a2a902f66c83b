"""Qwen2.5-Omni: every frame is one audio item between its begin and end tokens.

Source: vllm/model_executor/models/qwen2_5_omni_thinker.py (0.32) and transformers'
Qwen2_5OmniProcessor (5.19).
"""

from __future__ import annotations

from typing import Any

from harness.models.front_ends.audio_item import AudioItemFrontEnd


class Qwen25OmniFrontEnd(AudioItemFrontEnd):
    """25 tokens a second between two others."""

    frame_text = "<|audio_bos|><|AUDIO|><|audio_eos|>"

    @staticmethod
    def prompt_tokens(num_mel_frames: int) -> int:
        """Two halvings: a convolution of stride 2, then a mean over pairs.

        Example: 2 s -> 200 log-mel frames -> 50 tokens, 2 around them -> 52.
        """
        after_convolution = (num_mel_frames - 1) // 2 + 1
        return (after_convolution - 2) // 2 + 1 + 2

    @property
    def engine_args(self) -> dict[str, Any]:
        """The feature extractor pads to one frame; by itself it would pad to 300 s."""
        padding = {"audio_kwargs": {"max_length": self._frame_samples}}
        return super().engine_args | {"mm_processor_kwargs": padding}
