"""The engine and its memory."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from harness.core.errors import ConfigError


class EngineKind(enum.Enum):
    """Which engine answers."""

    vllm = "vllm"
    sim = "sim"
    echo = "echo"
    reference = "reference"


class OnMaxModelLen(enum.Enum):
    """What to do about a session that would reach the engine's max_model_len."""

    refuse = "refuse"
    rotate = "rotate"
    end = "end"


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """The engine and its memory.

    kv_pool_blocks, block_size_tokens: size of the KV pool; null blocks: what the GPU's memory
    leaves. max_model_len: longest request vLLM accepts, tokens; null: sized from the run's horizon.
    on_max_model_len: a session that would reach it, where vLLM would kill the engine core, is
    refused
        before the run, rotated into a fresh request (its context is lost), or ended.
    max_num_seqs: sessions the scheduler holds at once, paused ones included.
    max_num_batched_tokens: tokens a step may compute.
    dtype, quantization: of weights and cache; null quantization: as the checkpoint says.
    enforce_eager: no CUDA graphs.
    gpu_memory_utilization: share of the GPU's memory for weights and KV pool; CUDA only.
    prefix_caching: whether equal prefixes share blocks (off: shared audio would inflate capacity).
    host_bound: keep the host work of a frame from growing with its session's age, whatever the
        retention (docs/bound.md).
    warmup_frames: frames of a throw-away session before the clock starts.
    startup_timeout_s: an engine that is not up by then is given up.
    hang_timeout_s: an engine whose scheduler has work but takes no step for this long is dead.
    async_scheduling: engine=sim: decide on a step while the one before runs; null: at scale=full,
        as vLLM does on CUDA, and not at scale=tiny, as on a CPU.
    scheduler_shortcuts: engine=sim: leave out work of vLLM's scheduler that decides nothing.
    record_steps: write what every step computed and how long it took, for experiment=calibrate.
    dry_run: print what would be loaded, the pool it would get and the forecast; run nothing.
    """

    kind: EngineKind = EngineKind.vllm
    kv_pool_blocks: int | None = 128
    block_size_tokens: int = 32
    max_model_len: int | None = None
    on_max_model_len: OnMaxModelLen = OnMaxModelLen.refuse
    max_num_seqs: int = 64
    max_num_batched_tokens: int = 256
    dtype: str = "bfloat16"
    quantization: str | None = None
    enforce_eager: bool = True
    gpu_memory_utilization: float = 0.9
    prefix_caching: bool = False
    host_bound: bool = True
    warmup_frames: int = 3
    startup_timeout_s: float = 120.0
    hang_timeout_s: float = 10.0
    async_scheduling: bool | None = None
    scheduler_shortcuts: bool = True
    record_steps: bool = False
    dry_run: bool = False

    def __post_init__(self) -> None:
        for name in ("kv_pool_blocks", "block_size_tokens", "max_model_len", "max_num_seqs"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"engine.{name}={value} must be at least 1")
        if not 0 < self.gpu_memory_utilization <= 1:
            raise ConfigError(
                f"engine.gpu_memory_utilization={self.gpu_memory_utilization} must lie in 0..1"
            )
