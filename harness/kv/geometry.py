"""Sizes of a KV cache: tokens, blocks and bytes of one model's attention layers.

Source: vllm/v1/kv_cache_interface.py (0.32), FullAttentionSpec.page_size_bytes. The paper's four
models are the worked examples.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.core.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class KVGeometry:
    """Shape of the KV cache of the layers that keep one.

    num_layers, num_kv_heads, head_size: of the text backbone.
    dtype_bytes: bytes of one cached element; 2 is bf16.

    Raises: ConfigError if a size is below 1.
    """

    num_layers: int
    num_kv_heads: int
    head_size: int
    dtype_bytes: int = 2

    def __post_init__(self) -> None:
        for name in ("num_layers", "num_kv_heads", "head_size", "dtype_bytes"):
            if getattr(self, name) < 1:
                raise ConfigError(f"kv.{name}={getattr(self, name)} must be at least 1")

    @property
    def bytes_per_token(self) -> int:
        """Keys and values of one token over all layers, in bytes.

        Example: Qwen3-Omni-30B-A3B, 48 layers x 2 x 4 heads x 128 x 2 B -> 98,304.
        """
        return self.num_layers * 2 * self.num_kv_heads * self.head_size * self.dtype_bytes

    def pool_bytes(self, num_blocks: int, block_size_tokens: int) -> int:
        """Return the bytes that a pool of `num_blocks` takes.

        Example: 20 blocks of 128 tokens at 57,344 B -> 146,800,640.
        """
        return num_blocks * block_size_tokens * self.bytes_per_token

    def blocks_in(self, pool_bytes: int, block_size_tokens: int) -> int:
        """Return the whole blocks that fit into `pool_bytes`.

        Example: 1 GiB, block 16, 98,304 B a token -> 682.
        """
        return pool_bytes // (block_size_tokens * self.bytes_per_token)


def blocks_for(num_tokens: int, block_size_tokens: int) -> int:
    """Return the blocks that hold `num_tokens`, the last one perhaps in part.

    Example: 33 tokens, block 32 -> 2.
    """
    return -(-num_tokens // block_size_tokens)


def tokens_in(num_blocks: int, block_size_tokens: int) -> int:
    """Return the token slots of `num_blocks`.

    Example: 20 blocks of 128 -> 2,560.
    """
    return num_blocks * block_size_tokens
