"""From a run's configuration to vLLM's engine arguments, and to the environment that vLLM reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from harness.config import RunConfig, ScaleName
from harness.core.errors import ConfigError
from harness.kv.retention import recycling_of
from harness.models.front_ends import FrontEnd
from harness.models.hub_weights import hub_snapshot
from harness.models.probe import probe_checkpoint
from harness.models.tiny import ensure_tiny_checkpoint
from harness.vllm_plugin.config import HOST_KEY, additional_config_for

OBSERVER_KEY = "harness_observer_dir"
STEP_LOG_KEY = "harness_step_log"
_SCHEDULERS = "harness.engines.observed_scheduler"


def prepare_environment() -> None:
    """Set what vLLM reads from the environment; call before vLLM is first imported."""
    os.environ.update(
        HF_HUB_OFFLINE=os.environ.get("HF_HUB_OFFLINE", "1"),
        VLLM_LOGGING_LEVEL=os.environ.get("VLLM_LOGGING_LEVEL", "ERROR"),
        VLLM_NO_USAGE_STATS="1",
        # With 0 the worker lives inside the engine core's process: no pickling, one process less.
        VLLM_ENABLE_V1_MULTIPROCESSING="0",
        VLLM_CPU_KVCACHE_SPACE=os.environ.get("VLLM_CPU_KVCACHE_SPACE", "1"),
        VLLM_CPU_OMP_THREADS_BIND="nobind",
        OMP_NUM_THREADS=os.environ.get("OMP_NUM_THREADS", "1"),
        TOKENIZERS_PARALLELISM="false",
    )


def open_hub() -> None:
    """Let weights be fetched, unless the user has set HF_HUB_OFFLINE; tiny runs never ask a hub.

    Call before the fork server starts, which reads the environment once for all runs.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "0")


def check_device(run: RunConfig) -> None:
    """Refuse a full-size model on a machine that cannot hold them. Raises: ConfigError."""
    if run.scale is not ScaleName.full:
        return
    import torch

    if not torch.cuda.is_available():
        raise ConfigError(
            "scale=full needs a CUDA device and this machine has none: choose scale=tiny, or add "
            "engine.dry_run=true hardware=h100 to see the plan"
        )


def checkpoint_of(run: RunConfig, cache: Path) -> str:
    """Directory of the weights that a run serves: made, fetched by a script, or from the hub.

    Raises: ConfigError if they are not there and cannot be had.
    """
    if run.model.is_probe:
        return str(probe_checkpoint(run.model, cache))
    if run.scale is ScaleName.tiny:
        return str(ensure_tiny_checkpoint(str(run.model.family), cache))
    return str(hub_snapshot(run.model.weights))


def engine_args(
    run: RunConfig, checkpoint: str, front_end: FrontEnd, observer_dir: Path
) -> dict[str, Any]:
    """Arguments of vLLM's AsyncEngineArgs for a run.

    observer_dir: where the observed scheduler writes its state page, notes and bound report.
    """
    engine, is_full = run.engine, run.scale is ScaleName.full
    scheduler = "ObservedAsyncScheduler" if is_full else "ObservedScheduler"
    arguments: dict[str, Any] = {
        "model": checkpoint,
        "dtype": engine.dtype,
        "quantization": engine.quantization,
        "seed": run.seed,
        "enforce_eager": engine.enforce_eager,
        "block_size": engine.block_size_tokens,
        "max_model_len": run.max_model_len,
        "max_num_seqs": engine.max_num_seqs,
        "max_num_batched_tokens": engine.max_num_batched_tokens,
        "enable_prefix_caching": engine.prefix_caching,
        "disable_log_stats": True,
        "scheduler_cls": f"{_SCHEDULERS}.{scheduler}",
        "additional_config": {
            OBSERVER_KEY: str(observer_dir),
            HOST_KEY: engine.host_bound,
            STEP_LOG_KEY: engine.record_steps,
            **additional_config_for(run.retention),
        },
        **front_end.engine_args,
    }
    recycling = recycling_of(run.retention, run.model.prompt_tokens_per_frame)
    if recycling is not None and "limit_mm_per_prompt" in arguments:
        # Kept frames go in with a new one; the shorter their answers, the more of them.
        limits = {**arguments["limit_mm_per_prompt"], "audio": recycling.kept_frames + 1}
        arguments["limit_mm_per_prompt"] = limits
    if run.model.native_context_tokens is not None:
        # A published configuration turns the model's own context on, so that a run without it has
        # to turn it off.
        own = run.retention.window_tokens if run.retention.native else None
        overrides = front_end.engine_args.get("hf_overrides", {})
        arguments["hf_overrides"] = {**overrides, "sliding_window": own}
    if is_full:
        arguments["gpu_memory_utilization"] = engine.gpu_memory_utilization
    if engine.kv_pool_blocks is not None:
        # vLLM keeps one block for itself.
        arguments["num_gpu_blocks_override"] = engine.kv_pool_blocks + 1
    return arguments
