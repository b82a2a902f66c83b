"""From a run's configuration to what the simulator needs: a GPU's pool, a step time, a vLLM config.

Imports vLLM only to build its configuration, so that a run can be refused without loading it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from harness.capacity import check_engine_starts, planned_pool_blocks
from harness.config import RunConfig
from harness.core.digests import digest
from harness.core.errors import ConfigError
from harness.core.files import write_json
from harness.kv.geometry import KVGeometry
from harness.models.hardware import StepTime
from harness.vllm_plugin.config import additional_config_for

# Any decoder will do: it is never built, and the cache's shape is given to the scheduler by us.
_ARCHITECTURE = "HarnessGeometry"
_DTYPES = {1: "float8_e4m3fn", 2: "bfloat16", 4: "float32"}


def check_simulation(run: RunConfig) -> None:
    """Refuse a simulation of unknown memory or speed, or of an engine that would not start.

    Raises: ConfigError or PoolExhausted.
    """
    check_engine_starts(run, simulated_pool_blocks(run))
    simulated_step_time(run)
    kv_dtype(run.model.kv)


def simulated_pool_blocks(run: RunConfig) -> int:
    """KV blocks of the simulated pool. Raises: ConfigError if no GPU's memory is named."""
    pool_blocks = planned_pool_blocks(run)
    if pool_blocks is None:
        raise ConfigError(
            f"hardware={run.hardware.name} has no known memory to size the KV pool from: name a "
            "GPU with hardware=rtx_pro_6000, or set engine.kv_pool_blocks"
        )
    return pool_blocks


def simulated_step_time(run: RunConfig) -> StepTime:
    """What a step costs. Raises: ConfigError if the GPU's entry does not say it for this model."""
    cost = run.hardware.step_time(run.model.name)
    if cost is None:
        raise ConfigError(
            f"conf/hardware/{run.hardware.name}.yaml has no step time of {run.model.name}: name "
            "another GPU with hardware=..., or add an entry below step_times"
        )
    if cost.scale != run.scale.name:
        raise ConfigError(
            f"conf/hardware/{run.hardware.name}.yaml has the step time of {run.model.name} at "
            f"scale={cost.scale}, not {run.scale.name}: name another with hardware=..."
        )
    return cost


def kv_dtype(kv: KVGeometry) -> str:
    """Name of torch's type for one cached element. Raises: ConfigError if there is none."""
    if kv.dtype_bytes not in _DTYPES:
        raise ConfigError(f"kv.dtype_bytes={kv.dtype_bytes} must be one of {sorted(_DTYPES)}")
    return _DTYPES[kv.dtype_bytes]


def vllm_config(run: RunConfig, cache: Path) -> Any:
    """A run as vLLM's own, validated configuration, with no weights, tokenizer or network.

    cache: directory for the one file that vLLM insists on, a config.json.
    Raises: ConfigError if the bound cannot be kept under it.
    """
    from harness.vllm_plugin.refusals import check_engine_config

    load_vllm()
    engine = run.engine
    config = _engine_config(
        _geometry_directory(run.model.kv, run.max_model_len, cache),
        block_size=engine.block_size_tokens,
        max_model_len=run.max_model_len,
        max_num_seqs=engine.max_num_seqs,
        max_num_batched_tokens=engine.max_num_batched_tokens,
        enable_prefix_caching=engine.prefix_caching,
        additional_config=additional_config_for(run.retention),
    )
    check_engine_config(config)
    # The CPU platform forces it off, and the scheduler asks for a pool that a worker would set.
    config.scheduler_config.async_scheduling = run.is_scheduled_async
    config.cache_config.num_gpu_blocks = simulated_pool_blocks(run) + 1
    return config


def warm_up() -> None:
    """Make one small configuration, so that no later one pays for what vLLM does the first time."""
    load_vllm()
    smallest = KVGeometry(num_layers=1, num_kv_heads=1, head_size=64)
    with tempfile.TemporaryDirectory() as cache:
        _engine_config(_geometry_directory(smallest, 64, Path(cache)), max_model_len=64)


def _engine_config(directory: Path, **sizes: Any) -> Any:
    from vllm.engine.arg_utils import EngineArgs

    return EngineArgs(
        model=str(directory),
        skip_tokenizer_init=True,
        dtype="bfloat16",
        enforce_eager=True,
        disable_log_stats=True,
        **sizes,
    ).create_engine_config()


def load_vllm() -> None:
    """Import what the first configuration of a process would; calling it again changes nothing."""
    from vllm.model_executor.models import ModelRegistry
    from vllm.model_executor.models.llama import LlamaForCausalLM
    from vllm.plugins import load_general_plugins

    load_general_plugins()
    # A class, not its name: vLLM looks into a name by importing it in a new process.
    if _ARCHITECTURE not in ModelRegistry.get_supported_archs():
        ModelRegistry.register_model(_ARCHITECTURE, LlamaForCausalLM)


def _geometry_directory(kv: KVGeometry, max_model_len: int, cache: Path) -> Path:
    """A directory with a config.json of these layers and heads, made if need be."""
    content = {
        "architectures": [_ARCHITECTURE],
        "model_type": "llama",
        "num_hidden_layers": kv.num_layers,
        "num_attention_heads": kv.num_kv_heads,
        "num_key_value_heads": kv.num_kv_heads,
        "head_dim": kv.head_size,
        "hidden_size": kv.num_kv_heads * kv.head_size,
        "intermediate_size": kv.num_kv_heads * kv.head_size,
        "vocab_size": 32_000,
        "max_position_embeddings": max_model_len,
    }
    directory = cache / "geometries" / digest(content)
    if not (directory / "config.json").exists():
        write_json(directory / "config.json", content)
    return directory
