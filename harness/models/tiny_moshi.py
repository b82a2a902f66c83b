"""Recipe of the tiny Moshi: two narrow layers of each kind under Kyutai's names, and a tiny Mimi.

Two temporal layers of width 128 (4 heads of 32), two depth layers of width 64, 256 text ids and 8
codebooks of 64. Full attention: a call keeps everything, as the real model does where its context
of 3000 frames is not reached. Mimi has the real one's rate, frames, strides and number of
codebooks. The scales are such that answers vary, and that the best id leads clearly.
Source: parameter names of `kyutai/moshiko-pytorch-bf16`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.models import tiny_mimi

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from harness.models.moshi.config import MoshiConfig

SEED = 20_240_917
SIZES: dict[str, Any] = {
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 352,
    "sliding_window": None,
    "text_vocab_size": 256,
    "codebook_size": 64,
    "depth_hidden_size": 64,
    "depth_num_layers": 2,
    "depth_num_heads": 4,
    "depth_intermediate_size": 176,
    "text_temperature": 0.0,
    "audio_temperature": 0.0,
    "dtype": "float32",
}
_HEAD_SCALE = 3.0


def build(directory: Path) -> None:
    """Write configuration, weights and codec into an existing directory."""
    import torch
    from safetensors.torch import save_file

    from harness.models.moshi.codec import CODEC_DIRECTORY
    from harness.models.moshi.config import MoshiConfig

    config = MoshiConfig(**SIZES)
    config.save_pretrained(directory)
    weights = language_model(config, torch.Generator().manual_seed(SEED))
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
    tiny_mimi.build(directory / CODEC_DIRECTORY, config)


def language_model(config: MoshiConfig, generator: Generator) -> dict[str, Tensor]:
    """Random weights under Kyutai's names."""
    import torch

    weights: dict[str, Tensor] = {}

    def matrix(name: str, rows: int, columns: int, scale: float = 1.0) -> None:
        values = torch.randn(rows, columns, generator=generator)
        weights[f"{name}.weight"] = values * scale * columns**-0.5

    def table(name: str, rows: int, columns: int) -> None:
        weights[f"{name}.weight"] = torch.randn(rows, columns, generator=generator)

    def norm(name: str, width: int) -> None:
        weights[f"{name}.alpha"] = torch.ones(1, 1, width)

    def attention(name: str, width: int, steps: int) -> None:
        values = torch.randn(steps * 3 * width, width, generator=generator)
        weights[f"{name}.in_proj_weight"] = values * width**-0.5
        matrix(f"{name}.out_proj", steps * width, width)

    def feed_forward(name: str, width: int, inner: int) -> None:
        matrix(f"{name}.linear_in", 2 * inner, width)
        matrix(f"{name}.linear_out", width, inner)

    width, depth_width = config.hidden_size, config.depth_hidden_size
    steps, heard = config.num_codebooks, config.codebook_size + 1
    for index in range(config.num_hidden_layers):
        layer = f"transformer.layers.{index}"
        attention(f"{layer}.self_attn", width, 1)
        feed_forward(f"{layer}.gating", width, config.intermediate_size)
        norm(f"{layer}.norm1", width)
        norm(f"{layer}.norm2", width)
    norm("out_norm", width)
    matrix("text_linear", config.text_vocab_size, width, _HEAD_SCALE)
    table("text_emb", config.text_vocab_size + 1, width)
    for stream in range(2 * steps):
        table(f"emb.{stream}", heard, width)
    table("depformer_text_emb", config.text_vocab_size + 1, depth_width)
    for step in range(steps):
        matrix(f"linears.{step}", config.codebook_size, depth_width, _HEAD_SCALE)
        matrix(f"depformer_in.{step}", depth_width, width)
        if step < steps - 1:
            table(f"depformer_emb.{step}", heard, depth_width)
    for index in range(config.depth_num_layers):
        layer = f"depformer.layers.{index}"
        attention(f"{layer}.self_attn", depth_width, steps)
        for step in range(steps):
            feed_forward(f"{layer}.gating.{step}", depth_width, config.depth_intermediate_size)
        norm(f"{layer}.norm1", depth_width)
        norm(f"{layer}.norm2", depth_width)
    return weights
