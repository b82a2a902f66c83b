"""Kyutai's parameter names and where they go; no engine."""

import warnings
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

with warnings.catch_warnings():
    # Importing vLLM meets deprecations of its own libraries, which are errors in our tests.
    warnings.simplefilter("ignore")
    from harness.models.moshi import weights

from harness.core.errors import ConfigError
from harness.models.moshi.config import MoshiConfig
from harness.models.moshi.depth import DepthTransformer
from harness.models.tiny_moshi import SIZES, language_model


def _published() -> Iterator[str]:
    """Names in model.safetensors of kyutai/moshiko-pytorch-bf16."""
    yield from ("text_emb.weight", "text_linear.weight", "out_norm.alpha")
    yield "depformer_text_emb.weight"
    yield from (f"emb.{index}.weight" for index in range(16))
    yield from (f"linears.{index}.weight" for index in range(8))
    yield from (f"depformer_in.{index}.weight" for index in range(8))
    yield from (f"depformer_emb.{index}.weight" for index in range(7))
    for tower, depth in (("transformer", 32), ("depformer", 6)):
        for layer in range(depth):
            name = f"{tower}.layers.{layer}"
            yield from (f"{name}.norm1.alpha", f"{name}.norm2.alpha")
            yield from (f"{name}.self_attn.in_proj_weight", f"{name}.self_attn.out_proj.weight")
            steps = [""] if tower == "transformer" else [f".{step}" for step in range(8)]
            for step in steps:
                yield f"{name}.gating{step}.linear_in.weight"
                yield f"{name}.gating{step}.linear_out.weight"


def test_every_published_name_has_a_place_of_its_own() -> None:
    places = [weights.destination(name) for name in _published()]
    assert len(places) == len(set(_published()))
    assert len({(place.parameter, place.index) for place in places}) == len(places)


def test_the_tiny_checkpoint_uses_the_published_names() -> None:
    tiny = language_model(MoshiConfig(**SIZES), torch.Generator().manual_seed(0))
    assert set(tiny) <= set(_published())
    assert {name.split(".")[0] for name in tiny} == {name.split(".")[0] for name in _published()}


@pytest.mark.parametrize(
    ("published", "newer"),
    [
        (
            "transformer.layers.3.self_attn.in_proj_weight",
            "transformer.layers.3.self_attn.in_projs.0.weight",
        ),
        (
            "transformer.layers.3.self_attn.out_proj.weight",
            "transformer.layers.3.self_attn.out_projs.0.weight",
        ),
    ],
)
def test_both_spellings_of_a_projection_go_to_one_place(published: str, newer: str) -> None:
    assert weights.destination(published) == weights.destination(newer)


def test_a_foreign_tensor_is_named() -> None:
    with pytest.raises(ConfigError, match=r"holds encoder\.layers\.0\.weight"):
        weights.destination("encoder.layers.0.weight")


class _DepthOnly(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.depth = DepthTransformer(MoshiConfig(**SIZES))


@pytest.fixture
def depth_tensors() -> dict[str, Tensor]:
    tensors = language_model(MoshiConfig(**SIZES), torch.Generator().manual_seed(0))
    return {
        name: tensor
        for name, tensor in tensors.items()
        if name.startswith(("depformer", "linears"))
    }


def test_stacked_tensors_fill_their_rows_in_both_spellings(
    depth_tensors: dict[str, Tensor],
) -> None:
    model, newer_model = _DepthOnly(), _DepthOnly()
    filled = weights.load(model, depth_tensors.items())
    assert filled == set(dict(model.named_parameters()))
    newer: dict[str, Tensor] = {}
    for name, tensor in depth_tensors.items():
        for old, new in (("in_proj_weight", "in_projs"), ("out_proj.weight", "out_projs")):
            if name.endswith(old):
                stem = name.removesuffix(old) + new
                newer |= {
                    f"{stem}.{step}.weight": part for step, part in enumerate(tensor.chunk(8))
                }
                break
        else:
            newer[name] = tensor
    weights.load(newer_model, newer.items())
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, newer_model.get_parameter(name)), name
    in_proj = depth_tensors["depformer.layers.1.self_attn.in_proj_weight"]
    assert torch.equal(model.depth.layers[1].qkv[7], in_proj.chunk(8)[7])


def test_a_missing_codebook_is_named(depth_tensors: dict[str, Tensor]) -> None:
    del depth_tensors["linears.5.weight"]
    with pytest.raises(ConfigError, match=r"lacks rows \[5\] of depth\.heads"):
        weights.load(_DepthOnly(), depth_tensors.items())
