"""Moshi's transformer over frames: Llama's layers, with rotary pairs interleaved as Kyutai has
them.

Leans on vllm/model_executor/models/llama.py (0.32). The layers take their window from
`config.sliding_window` through vLLM's cache configuration, or the harness's bound.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from vllm.config import VllmConfig
from vllm.model_executor.layers.layernorm import RMSNorm
from vllm.model_executor.layers.rotary_embedding import get_rope
from vllm.model_executor.models.llama import LlamaAttention, LlamaDecoderLayer


class MoshiAttention(LlamaAttention):  # type: ignore[misc]  # vLLM is untyped for mypy
    """Neighbouring channels are rotated together, not halves of a head."""

    def _init_rotary_emb(self, config: Any, quant_config: Any) -> None:
        self.rotary_emb = get_rope(
            self.head_dim,
            max_position=self.max_position_embeddings,
            rope_parameters=config.rope_parameters,
            is_neox_style=False,
        )


class TemporalTransformer(nn.Module):  # type: ignore[misc]
    """Embedded frames to the hidden states that text and codes are decided from."""

    def __init__(self, vllm_config: VllmConfig, prefix: str) -> None:
        super().__init__()
        config = vllm_config.model_config.hf_config
        self.layers = nn.ModuleList(
            LlamaDecoderLayer(
                vllm_config, prefix=f"{prefix}.layers.{index}", attn_layer_type=MoshiAttention
            )
            for index in range(config.num_hidden_layers)
        )
        self.norm = RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(self, frames: Tensor, positions: Tensor) -> Tensor:
        """Frames and result (num_positions, hidden_size); positions (num_positions,)."""
        hidden, residual = frames, None
        for layer in self.layers:
            hidden, residual = layer(positions, hidden, residual)
        hidden, _ = self.norm(hidden, residual)
        return hidden
