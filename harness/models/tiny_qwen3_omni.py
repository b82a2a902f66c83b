"""Recipe of the tiny Qwen3-Omni thinker: audio encoder and mixture-of-experts backbone, random
weights.

Two text layers of width 128 (4 query heads, 2 KV heads of 32), each with 4 experts of which 2
answer, and two audio encoder layers of width 64; feature extractor, audio tokens a second, special
tokens and interleaved M-RoPE as in the real model.
Source: transformers `Qwen3OmniMoeThinkerForConditionalGeneration`, 5.19; checkpoint layout of
`Qwen/Qwen3-Omni-30B-A3B-Instruct` (weights under `thinker.`, one tensor for each expert's matrix).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.models.tiny_parts import (
    byte_level_tokenizer,
    drawn_from,
    log_mel_features,
    save_weights,
)

SEED = 20_250_922
# Wide enough that what a query sees decides what is said; transformers' 0.02 hardly does.
_SPREAD = 0.4
_PLAIN = {"pad_token": "<|endoftext|>", "bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
_MODALITY = {
    "audio_token": "<|audio_pad|>",
    "audio_bos_token": "<|audio_start|>",
    "audio_eos_token": "<|audio_end|>",
    "vision_bos_token": "<|vision_start|>",
    "vision_eos_token": "<|vision_end|>",
    "image_token": "<|image_pad|>",
    "video_token": "<|video_pad|>",
}


def build(directory: Path) -> None:
    """Write configuration, tokenizer, processor and weights into an existing directory."""
    from transformers import (
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
        Qwen3OmniMoeConfig,
        Qwen3OmniMoeProcessor,
        Qwen3OmniMoeThinkerForConditionalGeneration,
    )

    tokenizer, ids = byte_level_tokenizer(_PLAIN, _MODALITY)
    Qwen3OmniMoeProcessor(
        image_processor=Qwen2VLImageProcessor(patch_size=16),
        video_processor=Qwen2VLVideoProcessor(patch_size=16),
        feature_extractor=log_mel_features(num_mel_bins=128, chunk_length_s=300),
        tokenizer=tokenizer,
    ).save_pretrained(directory)

    config = Qwen3OmniMoeConfig(
        thinker_config={
            "audio_config": {
                "num_mel_bins": 128,
                "d_model": 64,
                "encoder_layers": 2,
                "encoder_attention_heads": 2,
                "encoder_ffn_dim": 128,
                "output_dim": 128,
                "n_window": 50,
                "n_window_infer": 800,
                "conv_chunksize": 500,
                "downsample_hidden_size": 16,
                "max_source_positions": 1500,
                "initializer_range": _SPREAD,
            },
            "vision_config": {
                "depth": 1,
                "hidden_size": 64,
                "intermediate_size": 64,
                "num_heads": 2,
                "out_hidden_size": 128,
                "deepstack_visual_indexes": [0],
                # vLLM reads these two, transformers has no default for them.
                "image_size": 768,
                "apply_vit_abs_pos_embed": True,
            },
            "text_config": {
                "vocab_size": len(tokenizer),
                "hidden_size": 128,
                "intermediate_size": 256,
                "moe_intermediate_size": 64,
                "num_experts": 4,
                "num_experts_per_tok": 2,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "num_key_value_heads": 2,
                "head_dim": 32,
                "max_position_embeddings": 32_768,
                "initializer_range": _SPREAD,
                "tie_word_embeddings": False,
                "rope_parameters": {
                    "rope_type": "default",
                    "rope_theta": 1e6,
                    "mrope_section": [4, 6, 6],
                    "mrope_interleaved": True,
                },
            },
            "audio_token_id": ids["audio_token"],
            "image_token_id": ids["image_token"],
            "video_token_id": ids["video_token"],
            "audio_start_token_id": ids["audio_bos_token"],
            "audio_end_token_id": ids["audio_eos_token"],
            "vision_start_token_id": ids["vision_bos_token"],
            "vision_end_token_id": ids["vision_eos_token"],
            "position_id_per_seconds": 13,
            "seconds_per_chunk": 2,
            "initializer_range": _SPREAD,
        },
        enable_audio_output=False,
    )
    config.architectures = ["Qwen3OmniMoeForConditionalGeneration"]
    config.save_pretrained(directory)

    thinker = drawn_from(
        SEED, lambda: Qwen3OmniMoeThinkerForConditionalGeneration(config.thinker_config)
    )
    save_weights(directory, dict(_published_layout(thinker.state_dict())))


def _published_layout(weights: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names and tensors as the published checkpoint has them: a matrix for each expert.

    transformers 5 fuses them: gate_up_proj (experts, 2 x intermediate, hidden) and down_proj
    (experts, hidden, intermediate).
    """
    for name, tensor in weights.items():
        layer, is_fused, projection = f"thinker.{name}".partition(".experts.")
        if not is_fused:
            yield layer, tensor
            continue
        for expert, matrix in enumerate(tensor):
            halves = (
                {"down_proj": matrix}
                if projection == "down_proj"
                else dict(zip(("gate_proj", "up_proj"), matrix.chunk(2), strict=True))
            )
            for half, part in halves.items():
                yield f"{layer}.experts.{expert}.{half}.weight", part.clone()
