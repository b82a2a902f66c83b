"""Moshi's transformer over the codebooks of one frame: eight short steps behind each frame's text.

Each codebook has projections of its own; what is shared is the norms. A step sees the frame's
hidden state, the id said one step before, and the steps before it; nothing outlives the frame.
Source: Moshi (arXiv 2410.00037), 3.4.2.
"""

from __future__ import annotations

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from harness.models.moshi.config import MoshiConfig

Cache = tuple[Tensor, Tensor]


def choose(logits: Tensor, temperature: float, top_k: int) -> Tensor:
    """One id a row of logits (n, size): the best, or one of the best `top_k` if temperature > 0."""
    if temperature <= 0:
        return logits.argmax(-1)
    best, ids = torch.topk(logits.float() / temperature, min(top_k, logits.shape[-1]))
    # The largest of logits with Gumbel noise is a draw from their softmax.
    noise = -torch.empty_like(best).exponential_().log()
    return ids.gather(-1, (best + noise).argmax(-1, keepdim=True)).squeeze(-1)


def _weight(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(*shape), requires_grad=False)


class DepthLayer(nn.Module):  # type: ignore[misc]  # torch is untyped for mypy
    """Attention and gated feed-forward; weights (num_codebooks, out, in)."""

    def __init__(self, config: MoshiConfig) -> None:
        super().__init__()
        steps, width = config.num_codebooks, config.depth_hidden_size
        inner = config.depth_intermediate_size
        self._num_heads, self._epsilon = config.depth_num_heads, config.rms_norm_eps
        self.attention_norm = _weight(width)
        self.qkv = _weight(steps, 3 * width, width)
        self.out = _weight(steps, width, width)
        self.feed_forward_norm = _weight(width)
        self.gate_up = _weight(steps, 2 * inner, width)
        self.down = _weight(steps, width, inner)

    def forward(self, hidden: Tensor, step: int, cache: Cache | None) -> tuple[Tensor, Cache]:
        """Hidden (n, width) of one step; cache: keys and values (n, heads, step, head size)."""
        num_rows, width = hidden.shape
        normed = self._norm(hidden, self.attention_norm)
        shape = (num_rows, 3, self._num_heads, 1, width // self._num_heads)
        query, key, value = functional.linear(normed, self.qkv[step]).view(shape).unbind(1)
        if cache is not None:
            key, value = torch.cat([cache[0], key], 2), torch.cat([cache[1], value], 2)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        hidden = hidden + functional.linear(mixed.reshape(num_rows, width), self.out[step])
        normed = self._norm(hidden, self.feed_forward_norm)
        gate, up = functional.linear(normed, self.gate_up[step]).chunk(2, -1)
        fed = functional.linear(functional.silu(gate) * up, self.down[step])
        return hidden + fed, (key, value)

    def _norm(self, hidden: Tensor, weight: Tensor) -> Tensor:
        return functional.rms_norm(hidden, (hidden.shape[-1],), weight, self._epsilon)


class DepthTransformer(nn.Module):  # type: ignore[misc]
    """From a frame's hidden state and text id to its codes."""

    def __init__(self, config: MoshiConfig) -> None:
        super().__init__()
        steps, width, size = config.num_codebooks, config.depth_hidden_size, config.codebook_size
        self._temperature, self._top_k = config.audio_temperature, config.audio_top_k
        self.text_embedding = _weight(config.text_vocab_size + 1, width)
        self.code_embeddings = _weight(steps - 1, size + 1, width)
        self.inputs = _weight(steps, width, config.hidden_size)
        self.layers = nn.ModuleList(DepthLayer(config) for _ in range(config.depth_num_layers))
        self.heads = _weight(steps, size, width)

    def forward(self, frame: Tensor, text: Tensor) -> Tensor:
        """Codes (n, num_codebooks) for frames (n, hidden_size) and text ids (n,)."""
        said, codes = text, []
        caches: list[Cache | None] = [None] * len(self.layers)
        for step, head in enumerate(self.heads):
            table = self.text_embedding if step == 0 else self.code_embeddings[step - 1]
            hidden = functional.linear(frame, self.inputs[step]) + functional.embedding(said, table)
            for index, layer in enumerate(self.layers):
                hidden, caches[index] = layer(hidden, step, caches[index])
            said = choose(functional.linear(hidden, head), self._temperature, self._top_k)
            codes.append(said)
        return torch.stack(codes, dim=1)
