"""Kyutai's parameter names, and where each tensor goes.

Both spellings are read: the published checkpoints keep the projections of all codebooks in one
tensor (`in_proj_weight`), newer ones write one a codebook (`in_projs.3.weight`).
Source: `kyutai/moshiko-pytorch-bf16`, model.safetensors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor, nn
from vllm.model_executor.model_loader.weight_utils import default_weight_loader

from harness.core.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Destination:
    """Where a tensor goes.

    parameter: name in the vLLM model.
    index: its row if the parameter stacks one tensor a codebook; None if it is all of it.
    shards: names of the equal parts that vLLM keeps in one parameter.
    """

    parameter: str
    index: int | None = None
    shards: tuple[str | int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Rule:
    pattern: str
    parameter: str
    shards: tuple[str | int, ...] = ()


# The group named `row` is the index into a stacked parameter; `layer` goes into its name.
_TEMPORAL = r"transformer\.layers\.(?P<layer>\d+)\."
_DEPTH = r"depformer\.layers\.(?P<layer>\d+)\."
_RULES = (
    _Rule(
        pattern=_TEMPORAL + r"self_attn\.(in_proj_weight|in_projs\.0\.weight)",
        parameter="temporal.layers.{layer}.self_attn.qkv_proj.weight",
        shards=("q", "k", "v"),
    ),
    _Rule(
        pattern=_TEMPORAL + r"self_attn\.(out_proj|out_projs\.0)\.weight",
        parameter="temporal.layers.{layer}.self_attn.o_proj.weight",
    ),
    _Rule(
        pattern=_TEMPORAL + r"gating\.linear_in\.weight",
        parameter="temporal.layers.{layer}.mlp.gate_up_proj.weight",
        shards=(0, 1),
    ),
    _Rule(
        pattern=_TEMPORAL + r"gating\.linear_out\.weight",
        parameter="temporal.layers.{layer}.mlp.down_proj.weight",
    ),
    _Rule(
        pattern=_TEMPORAL + r"norm1\.alpha",
        parameter="temporal.layers.{layer}.input_layernorm.weight",
    ),
    _Rule(
        pattern=_TEMPORAL + r"norm2\.alpha",
        parameter="temporal.layers.{layer}.post_attention_layernorm.weight",
    ),
    _Rule(pattern=r"out_norm\.alpha", parameter="temporal.norm.weight"),
    _Rule(pattern=r"text_linear\.weight", parameter="text_head.weight"),
    _Rule(pattern=r"text_emb\.weight", parameter="text_embedding"),
    _Rule(pattern=r"emb\.(?P<row>\d+)\.weight", parameter="code_embeddings"),
    _Rule(pattern=r"depformer_text_emb\.weight", parameter="depth.text_embedding"),
    _Rule(pattern=r"depformer_emb\.(?P<row>\d+)\.weight", parameter="depth.code_embeddings"),
    _Rule(pattern=r"depformer_in\.(?P<row>\d+)\.weight", parameter="depth.inputs"),
    _Rule(pattern=r"linears\.(?P<row>\d+)\.weight", parameter="depth.heads"),
    _Rule(
        pattern=_DEPTH + r"self_attn\.(in_proj_weight|in_projs\.(?P<row>\d+)\.weight)",
        parameter="depth.layers.{layer}.qkv",
    ),
    _Rule(
        pattern=_DEPTH + r"self_attn\.(out_proj|out_projs\.(?P<row>\d+))\.weight",
        parameter="depth.layers.{layer}.out",
    ),
    _Rule(
        pattern=_DEPTH + r"gating\.(?P<row>\d+)\.linear_in\.weight",
        parameter="depth.layers.{layer}.gate_up",
    ),
    _Rule(
        pattern=_DEPTH + r"gating\.(?P<row>\d+)\.linear_out\.weight",
        parameter="depth.layers.{layer}.down",
    ),
    _Rule(pattern=_DEPTH + r"norm1\.alpha", parameter="depth.layers.{layer}.attention_norm"),
    _Rule(pattern=_DEPTH + r"norm2\.alpha", parameter="depth.layers.{layer}.feed_forward_norm"),
)


def destination(name: str) -> Destination:
    """Where Kyutai's tensor `name` goes. Raises: ConfigError if Moshi has no such tensor."""
    for rule in _RULES:
        if match := re.fullmatch(rule.pattern, name):
            groups = match.groupdict()
            row = groups.get("row")
            return Destination(
                parameter=rule.parameter.format(layer=groups.get("layer")),
                index=None if row is None else int(row),
                shards=rule.shards,
            )
    raise ConfigError(
        f"the checkpoint holds {name}, which Moshi does not have: is it a Moshi language model in "
        "Kyutai's layout, as kyutai/moshiko-pytorch-bf16?"
    )


def load(model: nn.Module, weights: Iterable[tuple[str, Tensor]]) -> set[str]:
    """Fill `model` from Kyutai's tensors; returns the names of the parameters that were filled.

    Raises: ConfigError if a tensor is unknown, or a codebook's is missing.
    """
    parameters = dict(model.named_parameters())
    rows: dict[str, set[int]] = {}
    filled: set[str] = set()
    for name, tensor in weights:
        goal = destination(name)
        parameter = parameters[goal.parameter]
        if goal.shards:
            for shard, part in zip(goal.shards, tensor.chunk(len(goal.shards)), strict=True):
                parameter.weight_loader(parameter, part, shard)
        elif goal.index is not None:
            parameter.data[goal.index].copy_(tensor)
            rows.setdefault(goal.parameter, set()).add(goal.index)
        else:
            # Norms come as (1, 1, width), stacked projections as (codebooks * out, in).
            place = getattr(parameter, "weight_loader", default_weight_loader)
            shaped = tensor if hasattr(parameter, "weight_loader") else tensor.view_as(parameter)
            place(parameter, shaped.reshape(-1) if parameter.dim() == 1 else shaped)
        filled.add(goal.parameter)
    for name, found in rows.items():
        missing = sorted(set(range(len(parameters[name]))) - found)
        if missing:
            raise ConfigError(f"the checkpoint lacks rows {missing} of {name}: is it cut short?")
    return filled
