import pytest

from harness.core.errors import ConfigError
from harness.kv.geometry import KVGeometry, blocks_for, tokens_in


@pytest.mark.parametrize(
    ("layers", "kv_heads", "head_size", "bytes_per_token"),
    [
        pytest.param(32, 32, 128, 524_288, id="moshi"),
        pytest.param(36, 8, 128, 147_456, id="minicpm-o-4.5"),
        pytest.param(28, 4, 128, 57_344, id="qwen2.5-omni-7b"),
        pytest.param(48, 4, 128, 98_304, id="qwen3-omni-30b-a3b"),
    ],
)
def test_bytes_per_token_are_those_of_the_papers_four_models(
    layers, kv_heads, head_size, bytes_per_token
):
    geometry = KVGeometry(num_layers=layers, num_kv_heads=kv_heads, head_size=head_size)
    assert geometry.bytes_per_token == bytes_per_token


def test_an_fp8_cache_takes_half_the_bytes():
    shape = {"num_layers": 2, "num_kv_heads": 3, "head_size": 64}
    bf16, fp8 = KVGeometry(**shape), KVGeometry(**shape, dtype_bytes=1)
    assert 2 * fp8.bytes_per_token == bf16.bytes_per_token


def test_a_pool_holds_as_many_blocks_as_were_paid_for():
    geometry = KVGeometry(num_layers=28, num_kv_heads=4, head_size=128)
    assert geometry.pool_bytes(20, 128) == 146_800_640
    assert geometry.blocks_in(146_800_640, 128) == 20
    assert geometry.blocks_in(146_800_639, 128) == 19


@pytest.mark.parametrize(("tokens", "blocks"), [(0, 0), (1, 1), (32, 1), (33, 2)])
def test_a_partly_filled_block_counts_whole(tokens, blocks):
    assert blocks_for(tokens, 32) == blocks
    assert tokens_in(blocks, 32) >= tokens


def test_a_geometry_without_heads_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"kv\.num_kv_heads=0 must be at least 1"):
        KVGeometry(num_layers=1, num_kv_heads=0, head_size=64)
