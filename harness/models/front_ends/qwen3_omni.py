"""Qwen3-Omni: every frame is one audio item between its start and end tokens.

The end token has to be there: vLLM's M-RoPE gives a position to the token after the audio whether
there is one or not. A chunk that ended with audio would have one position too many, which kills the
engine core.
Source: vllm/model_executor/models/qwen3_omni_moe_thinker.py (0.32), `get_mrope_input_positions` and
`_get_feat_extract_output_lengths`; transformers' Qwen3OmniMoeProcessor (5.19), which pads to the
longest item and so, with one item, not at all.
"""

from __future__ import annotations

from harness.models.front_ends.audio_item import AudioItemFrontEnd


class Qwen3OmniFrontEnd(AudioItemFrontEnd):
    """13 tokens a second between two others."""

    frame_text = "<|audio_start|><|audio_pad|><|audio_end|>"

    @staticmethod
    def prompt_tokens(num_mel_frames: int) -> int:
        """Three convolutions of stride 2 over each second by itself.

        Example: 2 s -> 200 log-mel frames -> 13 + 13 tokens, 2 around them -> 28.
        Example: 0.25 s -> 25 log-mel frames -> 13 -> 7 -> 4 tokens, 2 around them -> 6.
        """
        seconds, rest = divmod(num_mel_frames, 100)
        for _ in range(3):
            rest = (rest - 1) // 2 + 1
        return 13 * seconds + rest + 2
