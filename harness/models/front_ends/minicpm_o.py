"""MiniCPM-o-4.5: every frame is one audio item, between a start and an end token for each second.

Served by the project's audio-only architecture (harness/models/minicpm_o), whose feature extractor
pads nothing. M-RoPE does not come into it: the backbone is Qwen3 with plain positions.
Source: vllm/model_executor/models/minicpmo.py and transformers_utils/processors/minicpmo.py (0.32).
"""

from __future__ import annotations

import json
from typing import Any

from harness.models.front_ends.audio_item import AudioItemFrontEnd
from harness.models.minicpm_o import ARCHITECTURE

# Encoder positions (20 ms each) that make one token: audio_pool_step of the published config.json.
_POOL_STEP = 5
_TOKENS_PER_SECOND = 10


class MiniCPMOFrontEnd(AudioItemFrontEnd):
    """10 tokens a second, each second between two others."""

    frame_text = "(<audio>./</audio>)"

    @staticmethod
    def prompt_tokens(num_mel_frames: int) -> int:
        """A convolution of stride 2, then a mean over five; two tokens around each second.

        Example: 1 s -> 100 log-mel frames -> 50 -> 10 tokens, 2 around them -> 12. 2 s -> 24.
        """
        after_convolution = (num_mel_frames - 1) // 2 + 1
        num_tokens = (after_convolution - _POOL_STEP) // _POOL_STEP + 1
        return num_tokens + 2 * -(-num_tokens // _TOKENS_PER_SECOND)

    @property
    def engine_args(self) -> dict[str, Any]:
        """The audio-only architecture, also for a published checkpoint.

        A published one keeps its config and tokenizer classes in the repository, so vLLM must be
        allowed to run that code; one that this project made has none.
        """
        return super().engine_args | {
            "hf_overrides": {"architectures": [ARCHITECTURE]},
            "trust_remote_code": self._brings_code(),
        }

    def _brings_code(self) -> bool:
        config = self._checkpoint / "config.json"
        return not config.exists() or "auto_map" in json.loads(config.read_text())
