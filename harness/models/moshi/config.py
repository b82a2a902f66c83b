"""Sizes of Moshi's two transformers, in the form vLLM reads; the defaults are Moshi 7B's.

Kyutai's checkpoints (`kyutai/moshiko-pytorch-bf16`) hold no config.json that vLLM could read: save
one beside the weights (`MoshiConfig().save_pretrained(directory)`) or point vLLM's `hf_config_path`
at one.
"""

from __future__ import annotations

from typing import Any

from transformers import PretrainedConfig

MODEL_TYPE = "kyutai_moshi"
ARCHITECTURE = "KyutaiMoshiForConditionalGeneration"


class MoshiConfig(PretrainedConfig):  # type: ignore[misc]  # transformers is untyped for mypy
    """The temporal transformer in Llama's terms, the depth transformer in terms of its own.

    intermediate_size, depth_intermediate_size: width of the gated feed-forward.
    sliding_window: Moshi's context, frames; None keeps all of them.
    text_vocab_size: text ids that can be said; one more can be heard (the initial id).
    codebook_size: codes of each codebook; one more can be heard.
    num_codebooks: codebooks of each of the two speakers.
    text_temperature, audio_temperature: 0 decodes greedily.
    text_top_k, audio_top_k: candidates that sampling chooses from.
    vocab_size: rows of the logits: text ids, then the codes of every codebook.
    """

    model_type = MODEL_TYPE

    def __init__(
        self,
        *,
        hidden_size: int = 4096,
        num_hidden_layers: int = 32,
        num_attention_heads: int = 32,
        intermediate_size: int = 11_264,
        rope_theta: float = 10_000.0,
        rms_norm_eps: float = 1e-8,
        sliding_window: int | None = 3000,
        max_position_embeddings: int = 65_536,
        text_vocab_size: int = 32_000,
        codebook_size: int = 2048,
        num_codebooks: int = 8,
        depth_hidden_size: int = 1024,
        depth_num_layers: int = 6,
        depth_num_heads: int = 16,
        depth_intermediate_size: int = 2816,
        text_temperature: float = 0.7,
        text_top_k: int = 25,
        audio_temperature: float = 0.8,
        audio_top_k: int = 250,
        **kwargs: Any,
    ) -> None:
        self.hidden_size = hidden_size
        self.num_hidden_layers = num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.num_key_value_heads = num_attention_heads
        self.head_dim = hidden_size // num_attention_heads
        self.intermediate_size = intermediate_size
        self.hidden_act = "silu"
        self.rope_theta = rope_theta
        self.rope_parameters = {"rope_type": "default", "rope_theta": rope_theta}
        self.rms_norm_eps = rms_norm_eps
        self.sliding_window = sliding_window
        self.max_position_embeddings = max_position_embeddings
        self.text_vocab_size = text_vocab_size
        self.codebook_size = codebook_size
        self.num_codebooks = num_codebooks
        self.depth_hidden_size = depth_hidden_size
        self.depth_num_layers = depth_num_layers
        self.depth_num_heads = depth_num_heads
        self.depth_intermediate_size = depth_intermediate_size
        self.text_temperature = text_temperature
        self.text_top_k = text_top_k
        self.audio_temperature = audio_temperature
        self.audio_top_k = audio_top_k
        self.vocab_size = text_vocab_size + num_codebooks * codebook_size
        for derived in ("num_key_value_heads", "head_dim", "hidden_act", "vocab_size"):
            kwargs.pop(derived, None)
        kwargs.pop("rope_parameters", None)
        kwargs.setdefault("architectures", [ARCHITECTURE])
        kwargs.setdefault("tie_word_embeddings", False)
        super().__init__(**kwargs)
