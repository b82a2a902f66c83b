"""Does a run fit its pool? Answered before the engine starts, in words that name what to change."""

from __future__ import annotations

from harness.config import OnMaxModelLen, RunConfig
from harness.core.errors import ConfigError, PoolExhausted
from harness.kv.geometry import blocks_for
from harness.kv.retention import plateau_blocks, recycling_of, validate_for_block_size

# Activations at max_num_batched_tokens, encoder cache and CUDA graphs; vLLM profiles it at
# start-up.
ACTIVATION_RESERVE_BYTES = 5e9


def blocks_per_frame(run: RunConfig) -> int:
    """KV blocks that one more frame of a session needs, at most."""
    return blocks_for(run.model.kv_tokens_per_frame, run.engine.block_size_tokens)


def session_plateau_blocks(run: RunConfig) -> int:
    """Most blocks a session holds during the run: its bound, or all of it if nothing is evicted."""
    return _held_blocks(run, run.model.kv_tokens_per_frame)


def planned_pool_blocks(run: RunConfig) -> int | None:
    """KV blocks that the engine will have; None if that depends on a GPU that is not named.

    What the GPU's memory leaves after the weights and a reserve for activations and CUDA graphs.
    Example: Qwen3-Omni-30B FP8 on 102.6 GB at 0.9: 92.3 - 31.7 - 5.0 = 55.6 GB, 0.57 M tokens; the
    paper's pool is 0.53 to 0.56 M.
    """
    if run.engine.kv_pool_blocks is not None:
        return run.engine.kv_pool_blocks
    memory = run.hardware.memory_bytes
    if memory is None:
        return None
    is_fp8 = run.engine.quantization == "fp8"
    weights = run.model.weights.size_bytes(1 if is_fp8 else 2)
    left = memory * run.engine.gpu_memory_utilization - weights - ACTIVATION_RESERVE_BYTES
    return max(0, run.model.kv.blocks_in(int(left), run.engine.block_size_tokens))


def most_in_flight_tokens(run: RunConfig) -> int:
    """Tokens that may be scheduled and not yet settled: a full step, two with async scheduling.

    Source: `VllmConfig.max_in_flight_tokens`, vLLM 0.32, without pipeline parallelism.
    """
    return (2 if run.is_scheduled_async else 1) * run.engine.max_num_batched_tokens


def plateau_occupancy(run: RunConfig, pool_blocks: int) -> float:
    """Pool share that all sessions together would hold in the end; above 1 the pool overflows."""
    return run.workload.num_sessions * session_plateau_blocks(run) / pool_blocks


def _held_blocks(run: RunConfig, in_flight_tokens: int) -> int:
    held = plateau_blocks(
        run.retention,
        run.engine.block_size_tokens,
        in_flight_tokens,
        max_model_len=min(run.longest_request_tokens, run.max_model_len),
    )
    assert held is not None, "a session with an end holds a finite number of blocks"
    return held


def check_capacity(run: RunConfig) -> None:
    """Refuse what vLLM would refuse, or die of, later and less clearly.

    Raises: ConfigError if W is below a block, a session outgrows max_model_len or sessions
    outnumber max_num_seqs; PoolExhausted if the pool is below what the engine accepts, or below the
    bound.
    """
    engine, workload = run.engine, run.workload
    validate_for_block_size(run.retention, engine.block_size_tokens)
    recycling_of(run.retention, run.most_frame_tokens)
    # One more token is sampled after the last frame's KV is counted.
    longest = run.longest_request_tokens + 1
    if run.retention.is_recycled and longest > run.max_model_len:
        raise ConfigError(
            f"retention.window_tokens={run.retention.window_tokens} makes requests of {longest} "
            f"tokens, over engine.max_model_len={run.max_model_len}: lower the window or raise it"
        )
    if longest > run.max_model_len and engine.on_max_model_len is OnMaxModelLen.refuse:
        raise ConfigError(
            f"workload.duration_s={workload.duration_s} makes sessions of {longest} tokens, over "
            f"engine.max_model_len={run.max_model_len}, where vLLM kills the engine core with "
            "every session: shorten the run, raise it, or set engine.on_max_model_len=rotate"
        )
    if run.max_model_len <= run.model.kv_tokens_per_frame:
        raise ConfigError(
            f"engine.max_model_len={run.max_model_len} is below one frame of "
            f"{run.model.kv_tokens_per_frame} tokens: raise it"
        )
    if run.most_admitted > engine.max_num_seqs:
        raise ConfigError(
            f"workload.num_sessions={workload.num_sessions} is over engine.max_num_seqs="
            f"{engine.max_num_seqs}, which counts paused sessions: the rest would never get a "
            "token; raise it, or cap what is let in with admission=..."
        )
    if engine.kv_pool_blocks is not None:
        _check_pool(run, engine.kv_pool_blocks)


def check_engine_starts(run: RunConfig, pool_blocks: int) -> None:
    """Refuse a pool that vLLM would refuse at start-up. Raises: PoolExhausted."""
    least = _least_pool_blocks(run)
    if pool_blocks < least:
        knob = "max_num_batched_tokens" if run.retention.is_evicting else "max_model_len"
        raise PoolExhausted(
            f"engine.kv_pool_blocks={pool_blocks} is below the {least} blocks of "
            f"{run.engine.block_size_tokens} tokens that vLLM needs to start: raise it or lower "
            f"engine.{knob}"
        )


def _check_pool(run: RunConfig, pool_blocks: int) -> None:
    workload = run.workload
    check_engine_starts(run, pool_blocks)
    # What an open system lets in is its controller's decision, and what the run is to show.
    is_closed = not workload.arrivals.is_open
    if is_closed and run.retention.is_bounded and plateau_occupancy(run, pool_blocks) > 1:
        smaller = "choose retention=sink_window" if run.retention.native else "lower the window"
        raise PoolExhausted(
            f"retention.window_tokens={run.retention.window_tokens} with sink_tokens="
            f"{run.retention.sink_tokens} holds {session_plateau_blocks(run)} blocks a session, "
            f"over its share of {pool_blocks // workload.num_sessions} in a pool of {pool_blocks} "
            f"for {workload.num_sessions} sessions: {smaller}, offer fewer sessions or "
            "raise engine.kv_pool_blocks"
        )


def _least_pool_blocks(run: RunConfig) -> int:
    """Pool size below which vLLM refuses to start: one session's admission bound."""
    held = plateau_blocks(
        run.retention,
        run.engine.block_size_tokens,
        most_in_flight_tokens(run),
        max_model_len=run.max_model_len,
    )
    assert held is not None, "max_model_len bounds every session"
    return held
