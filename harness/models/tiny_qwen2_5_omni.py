"""Recipe of the tiny Qwen2.5-Omni thinker: audio encoder and text backbone, random weights.

Two text layers of width 128 (4 query heads, 2 KV heads of 32) and two audio encoder layers of width
64; feature extractor, audio tokens per second, special tokens and M-RoPE layout as in the real
model.
Source: transformers `Qwen2_5OmniThinkerForConditionalGeneration`, 5.19; checkpoint layout of
`Qwen/Qwen2.5-Omni-7B` (weights under `thinker.`).
"""

from __future__ import annotations

from pathlib import Path

from harness.models.tiny_parts import (
    byte_level_tokenizer,
    drawn_from,
    log_mel_features,
    save_weights,
)

SEED = 20_250_326
_PLAIN = {"pad_token": "<|endoftext|>", "bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
_MODALITY = {
    "audio_token": "<|AUDIO|>",
    "audio_bos_token": "<|audio_bos|>",
    "audio_eos_token": "<|audio_eos|>",
    "vision_bos_token": "<|vision_bos|>",
    "vision_eos_token": "<|vision_eos|>",
    "image_token": "<|IMAGE|>",
    "video_token": "<|VIDEO|>",
}


def build(directory: Path) -> None:
    """Write configuration, tokenizer, processor and weights into an existing directory."""
    from transformers import (
        Qwen2_5OmniConfig,
        Qwen2_5OmniProcessor,
        Qwen2_5OmniThinkerForConditionalGeneration,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
    )

    tokenizer, ids = byte_level_tokenizer(_PLAIN, _MODALITY)
    Qwen2_5OmniProcessor(
        image_processor=Qwen2VLImageProcessor(),
        video_processor=Qwen2VLVideoProcessor(),
        feature_extractor=log_mel_features(num_mel_bins=128, chunk_length_s=300),
        tokenizer=tokenizer,
    ).save_pretrained(directory)

    config = Qwen2_5OmniConfig(
        thinker_config={
            "audio_config": {
                "num_mel_bins": 128,
                "d_model": 64,
                "encoder_layers": 2,
                "encoder_attention_heads": 2,
                "encoder_ffn_dim": 128,
                "output_dim": 128,
                "n_window": 100,
                "max_source_positions": 1500,
            },
            "vision_config": {
                "depth": 1,
                "hidden_size": 64,
                "intermediate_size": 64,
                "num_heads": 2,
                "out_hidden_size": 128,
                "embed_dim": 64,
            },
            "text_config": {
                "vocab_size": len(tokenizer),
                "hidden_size": 128,
                "intermediate_size": 256,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "num_key_value_heads": 2,
                "head_dim": 32,
                "max_position_embeddings": 32_768,
                # transformers' default here is True, where vLLM reads it and would not use lm_head.
                "tie_word_embeddings": False,
                "rope_parameters": {
                    "rope_type": "default",
                    "rope_theta": 1e6,
                    "mrope_section": [4, 6, 6],
                },
            },
            "audio_token_index": ids["audio_token"],
            "image_token_index": ids["image_token"],
            "video_token_index": ids["video_token"],
            "audio_start_token_id": ids["audio_bos_token"],
            "audio_end_token_id": ids["audio_eos_token"],
            "vision_start_token_id": ids["vision_bos_token"],
            "vision_end_token_id": ids["vision_eos_token"],
            "position_id_per_seconds": 25,
            "seconds_per_chunk": 2,
            "pad_token_id": ids["pad_token"],
        },
        enable_audio_output=False,
    )
    config.architectures = ["Qwen2_5OmniForConditionalGeneration"]
    config.save_pretrained(directory)

    thinker = drawn_from(
        SEED, lambda: Qwen2_5OmniThinkerForConditionalGeneration(config.thinker_config)
    )
    save_weights(
        directory, {f"thinker.{name}": tensor for name, tensor in thinker.state_dict().items()}
    )
