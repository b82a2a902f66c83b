"""Recipe of the tiny Qwen2.5-Omni thinker: audio encoder and text backbone, random weights.

Two text layers of width 128 (4 query heads, 2 KV heads of 32) and two audio encoder layers of width
64; feature extractor, audio tokens per second, special tokens and M-RoPE layout as in the real
model.
Source: transformers `Qwen2_5OmniThinkerForConditionalGeneration`, 5.19; checkpoint layout of
`Qwen/Qwen2.5-Omni-7B` (weights under `thinker.`).
"""

from __future__ import annotations

from pathlib import Path

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
    import torch
    from safetensors.torch import save_file
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import (
        PreTrainedTokenizerFast,
        Qwen2_5OmniConfig,
        Qwen2_5OmniProcessor,
        Qwen2_5OmniThinkerForConditionalGeneration,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
        WhisperFeatureExtractor,
    )

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    byte_level = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    byte_level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    byte_level.decoder = decoders.ByteLevel()
    special = _PLAIN | _MODALITY
    byte_level.add_special_tokens([AddedToken(text, special=True) for text in special.values()])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=byte_level, **_PLAIN, extra_special_tokens=_MODALITY
    )
    ids = {name: tokenizer.convert_tokens_to_ids(text) for name, text in special.items()}
    Qwen2_5OmniProcessor(
        image_processor=Qwen2VLImageProcessor(),
        video_processor=Qwen2VLVideoProcessor(),
        feature_extractor=WhisperFeatureExtractor(
            feature_size=128,
            sampling_rate=16_000,
            hop_length=160,
            n_fft=400,
            chunk_length=300,
            return_attention_mask=True,
        ),
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

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        thinker = Qwen2_5OmniThinkerForConditionalGeneration(config.thinker_config)
    weights = {
        f"thinker.{name}": tensor.to(torch.bfloat16).contiguous()
        for name, tensor in thinker.state_dict().items()
    }
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
