"""Whether a live engine really keeps what it was configured to keep, read from its own objects.

vLLM swallows a plugin that fails to load, and a bound that is not in force looks like one that is
until the pool is full. So the harness asks the scheduler, once the engine is up. Leans on
`Scheduler` (vllm/v1/core/sched/scheduler.py, 0.32): `kv_cache_config.kv_cache_groups` and
`kv_cache_manager.coordinator.single_type_managers`, one of each a cache group.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from vllm.v1.kv_cache_interface import FullAttentionSpec, iter_layer_specs

from harness.core.errors import EngineError
from harness.kv.retention import Retention
from harness.vllm_plugin.backend import is_bounded
from harness.vllm_plugin.config import retention_from
from harness.vllm_plugin.spec import SinkWindowManager, SinkWindowSpec

_REMEDY = "is the harness installed (`pip install -e .`), and VLLM_PLUGINS unset?"


@dataclass(frozen=True, kw_only=True)
class GroupReport:
    """One cache group: layers that share a block table.

    spec, manager: vLLM's class names.
    max_blocks_per_session: plateau of a session in this group; None if it grows without end.
    block_size_bytes: of one block in all layers of the group.
    """

    spec: str
    manager: str
    num_layers: int
    block_size_tokens: int
    block_size_bytes: int
    max_blocks_per_session: int | None


@dataclass(frozen=True, kw_only=True)
class BoundReport:
    """What an engine keeps of a session.

    state: "bounded", "native" (every layer has one window, the model's own) or "unbounded".
    window_tokens, sink_tokens: W and S in force; None and 0 if unbounded.
    blocks_per_session: plateau of a session over the groups with W; None if unbounded.
    num_bounded_layers, num_layers: of the layers with a cache (of the first pipeline stage).
    num_pool_blocks: of the whole pool.
    """

    state: str
    window_tokens: int | None
    sink_tokens: int
    blocks_per_session: int | None
    num_bounded_layers: int
    num_layers: int
    num_pool_blocks: int
    groups: tuple[GroupReport, ...]

    def sentence(self) -> str:
        """Say in one line what is in force, and what a session will hold."""
        if self.state == "unbounded":
            return (
                f"sessions are unbounded: {self.num_layers} layers, {self.num_pool_blocks} blocks"
            )
        held = [(group.max_blocks_per_session or 0, group) for group in self.groups]
        num_blocks = sum(blocks for blocks, _ in held)
        num_tokens = max(blocks * group.block_size_tokens for blocks, group in held)
        num_bytes = sum(blocks * group.block_size_bytes for blocks, group in held)
        seen = f"{self._seen_by_a_query()}; " if self.state == "bounded" else ""
        return (
            f"sessions are {self.state}: W={self.window_tokens}, S={self.sink_tokens} in "
            f"{self.num_bounded_layers} of {self.num_layers} layers; {seen}a session holds at most "
            f"{num_blocks} blocks ({num_tokens} tokens, {num_bytes / 2**20:.2f} MiB), "
            f"so that the pool of {self.num_pool_blocks} holds "
            f"{(self.num_pool_blocks - 1) // num_blocks} of them"
        )

    def _seen_by_a_query(self) -> str:
        """W and S as they are kept: in whole blocks, of the coarsest group."""
        assert self.window_tokens is not None
        block = max(group.block_size_tokens for group in self.groups)
        sinks = -(-self.sink_tokens // block) * block
        return (
            f"in blocks of {block} a decoding query sees the first {sinks} tokens and "
            f"the last {self.window_tokens} to {self.window_tokens + block - 1}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists, as JSON holds them."""
        return {**asdict(self), "groups": [asdict(group) for group in self.groups]}


def inspect_scheduler(scheduler: Any) -> BoundReport:
    """Report what a scheduler's engine keeps of a session.

    scheduler: vllm.v1.core.sched.scheduler.Scheduler, constructed.

    Raises: EngineError if that differs from what `additional_config` asks for.
    """
    groups = scheduler.kv_cache_config.kv_cache_groups
    managers = scheduler.kv_cache_manager.coordinator.single_type_managers
    specs = [group.kv_cache_spec for group in groups]
    wanted = retention_from(scheduler.vllm_config.additional_config) or Retention()
    for group, manager in zip(groups, managers, strict=True):
        _check_group(group, manager, wanted)
    bounded = [isinstance(spec, SinkWindowSpec) for spec in specs]
    if wanted.is_bounded and not any(bounded):
        raise EngineError(f"{_asked(wanted)}, but no layer is bounded ({_names(specs)}): {_REMEDY}")
    if wanted.is_bounded:
        _check_backends(scheduler.vllm_config, groups)
    reports = tuple(map(_group_report, groups, managers))
    found = wanted if wanted.is_bounded else _own_context(specs)
    is_limited = [True] * len(specs) if found.native else bounded
    bounded_reports = [report for report, flag in zip(reports, is_limited, strict=True) if flag]
    return BoundReport(
        state="native" if found.native else "bounded" if found.is_bounded else "unbounded",
        window_tokens=found.window_tokens,
        sink_tokens=found.sink_tokens,
        blocks_per_session=(
            sum(report.max_blocks_per_session or 0 for report in bounded_reports) or None
        ),
        num_bounded_layers=sum(report.num_layers for report in bounded_reports),
        num_layers=sum(report.num_layers for report in reports),
        num_pool_blocks=scheduler.kv_cache_config.num_blocks,
        groups=reports,
    )


def _own_context(specs: list[Any]) -> Retention:
    """What a model keeps by itself: one window for every layer, else in effect everything."""
    layers = [layer for spec in specs for layer in iter_layer_specs(spec)]
    windows = {getattr(layer, "sliding_window", None) for layer in layers}
    window = windows.pop() if len(windows) == 1 else None
    return Retention(window_tokens=window, native=window is not None)


def _check_group(group: Any, manager: Any, wanted: Retention) -> None:
    for spec in iter_layer_specs(group.kv_cache_spec):
        if isinstance(spec, SinkWindowSpec):
            if spec.retention != wanted:
                raise EngineError(f"{_asked(wanted)}, but a layer keeps {spec.retention}")
            if not isinstance(manager, SinkWindowManager):
                raise EngineError(
                    f"{_asked(wanted)}, but {type(manager).__name__} manages its blocks"
                )
        elif wanted.is_bounded and isinstance(spec, FullAttentionSpec):
            raise EngineError(
                f"{_asked(wanted)}, but {len(group.layer_names)} layers keep everything "
                f"({type(spec).__name__}, {group.layer_names[0]}, ...): {_REMEDY}"
            )


def _check_backends(vllm_config: Any, groups: list[Any]) -> None:
    """Where the worker shares this process, its layers can be looked at as well."""
    layers = vllm_config.compilation_config.static_forward_context
    for group in groups:
        if not isinstance(group.kv_cache_spec, SinkWindowSpec):
            continue
        for name in group.layer_names:
            if name in layers and not is_bounded(layers[name].get_attn_backend()):
                raise EngineError(f"layer {name} has a bounded cache but reads all of it")


def _group_report(group: Any, manager: Any) -> GroupReport:
    limit = manager.max_admission_blocks_per_request
    # A spec that wraps one of each layer adds them up itself.
    layers_a_page = len(group.layer_names) // len(iter_layer_specs(group.kv_cache_spec))
    return GroupReport(
        spec=type(group.kv_cache_spec).__name__,
        manager=type(manager).__name__,
        num_layers=len(group.layer_names),
        block_size_tokens=int(manager.block_size),
        block_size_bytes=int(group.kv_cache_spec.page_size_bytes) * layers_a_page,
        max_blocks_per_session=None if limit is None else int(limit),
    )


def _asked(wanted: Retention) -> str:
    if not wanted.is_bounded:
        return "additional_config asks for no bound"
    return f"additional_config asks for W={wanted.window_tokens}, S={wanted.sink_tokens}"


def _names(specs: list[Any]) -> str:
    return ", ".join(sorted({type(spec).__name__ for spec in specs})) or "no cache"
