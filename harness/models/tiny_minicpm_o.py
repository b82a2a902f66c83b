"""Recipe of the tiny MiniCPM-o-4.5: Whisper encoder and Qwen3 backbone, random weights.

Two text layers of width 128 (4 query heads, 2 KV heads of 32) and two audio encoder layers of width
64; feature extractor, audio tokens a second and special tokens as in the real model. The modelling
code is only in vLLM, so the weights are drawn in transformers' Whisper and Qwen3 and written under
the names of the published checkpoint. Left out: the vision tower, which audio-only serving does not
load, and the speech decoder, which vLLM does not have.
Source: vllm/model_executor/models/minicpmo.py, 0.32, `MiniCPMO4_5`; config.json and weight names of
`openbmb/MiniCPM-o-4_5`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.models.minicpm_o import ARCHITECTURE
from harness.models.tiny_parts import (
    byte_level_tokenizer,
    drawn_from,
    log_mel_features,
    save_weights,
)

SEED = 20_260_203
# Wide enough that what a query sees decides what is said; transformers' 0.02 hardly does.
_SPREAD = 0.15
_PLAIN = {
    "pad_token": "<|endoftext|>",
    "bos_token": "<|im_start|>",
    "eos_token": "<|im_end|>",
    "unk_token": "<unk>",
}
_MODALITY = {
    "im_start": "<image>",
    "im_end": "</image>",
    "slice_start": "<slice>",
    "slice_end": "</slice>",
    "audio_start": "<|audio_start|>",
    "audio_end": "<|audio_end|>",
    "spk_start": "<|spk_bos|>",
    "spk_end": "<|spk_eos|>",
}


def build(directory: Path) -> None:
    """Write configuration, tokenizer, feature extractor and weights into an existing directory."""
    from harness.models.minicpm_o.configuration import MiniCPMOAudioConfig

    tokenizer, ids = byte_level_tokenizer(_PLAIN, _MODALITY)
    tokenizer.save_pretrained(directory)
    _keep_names(directory / "tokenizer_config.json")
    log_mel_features(num_mel_bins=80, chunk_length_s=30).save_pretrained(directory)

    config = MiniCPMOAudioConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=32_768,
        initializer_range=_SPREAD,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        pad_token_id=ids["pad_token"],
        eos_token_id=ids["eos_token"],
        audio_config={
            "num_mel_bins": 80,
            "d_model": 64,
            "encoder_layers": 2,
            "encoder_attention_heads": 2,
            # vLLM takes the encoder's width to be a quarter of this.
            "encoder_ffn_dim": 256,
            "max_source_positions": 1500,
            "init_std": _SPREAD,
        },
        vision_config={
            "hidden_size": 64,
            "intermediate_size": 64,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "image_size": 56,
            "patch_size": 14,
        },
    )
    config.architectures = [ARCHITECTURE]
    config.save_pretrained(directory)
    save_weights(directory, drawn_from(SEED, lambda: _draw(config)))


def _keep_names(tokenizer_config: Path) -> None:
    """Let a loaded tokenizer have `audio_start`, `audio_start_id` and the like.

    transformers 5.19 writes such names to the top level and reads them only if they end in _token.
    """
    content = json.loads(tokenizer_config.read_text())
    content["extra_special_tokens"] = {name: content.pop(name) for name in _MODALITY}
    tokenizer_config.write_text(json.dumps(content, indent=2))


def _draw(config: Any) -> dict[str, Any]:
    """The weights under their published names; the order of drawing is part of the recipe."""
    import torch
    from transformers import Qwen3ForCausalLM
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    width = config.audio_config.d_model
    modules = {
        "llm": Qwen3ForCausalLM(config),
        "apm": WhisperEncoder(config.audio_config),
        "audio_projection_layer.linear1": torch.nn.Linear(width, config.hidden_size),
        "audio_projection_layer.linear2": torch.nn.Linear(config.hidden_size, config.hidden_size),
    }
    return {
        f"{part}.{name}": tensor
        for part, module in modules.items()
        for name, tensor in module.state_dict().items()
    }
