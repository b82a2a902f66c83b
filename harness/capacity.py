"""Does a run fit its pool? Answered before the engine starts, in words that name what to change."""

from __future__ import annotations

from harness.config import RunConfig
from harness.core.errors import ConfigError, PoolExhausted
from harness.kv.geometry import blocks_for
from harness.kv.retention import plateau_blocks, validate_for_block_size


def blocks_per_frame(run: RunConfig) -> int:
    """KV blocks that one more frame of a session needs, at most."""
    return blocks_for(run.model.kv_tokens_per_frame, run.engine.block_size_tokens)


def session_plateau_blocks(run: RunConfig) -> int:
    """Most blocks a session holds during the run: its bound, or all of it if nothing is evicted."""
    return _held_blocks(run, run.model.kv_tokens_per_frame)


def plateau_occupancy(run: RunConfig) -> float:
    """Pool share that all sessions together would hold in the end; above 1 the pool overflows."""
    return run.workload.num_sessions * session_plateau_blocks(run) / run.engine.kv_pool_blocks


def _held_blocks(run: RunConfig, in_flight_tokens: int) -> int:
    held = plateau_blocks(
        run.retention,
        run.engine.block_size_tokens,
        in_flight_tokens,
        max_model_len=run.final_session_tokens,
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
    # One more token is sampled after the last frame's KV is counted.
    longest = run.final_session_tokens + 1
    if longest > engine.max_model_len:
        raise ConfigError(
            f"workload.duration_s={workload.duration_s} makes sessions of {longest} tokens, over "
            f"engine.max_model_len={engine.max_model_len}, where vLLM kills the engine core with "
            "every session: shorten the run or raise engine.max_model_len"
        )
    if workload.num_sessions > engine.max_num_seqs:
        raise ConfigError(
            f"workload.num_sessions={workload.num_sessions} is over engine.max_num_seqs="
            f"{engine.max_num_seqs}, which counts paused sessions: the rest would never get a token"
        )
    least = _least_pool_blocks(run)
    if engine.kv_pool_blocks < least:
        raise PoolExhausted(
            f"engine.kv_pool_blocks={engine.kv_pool_blocks} is below the {least} blocks of "
            f"{engine.block_size_tokens} tokens that vLLM needs to start: raise it or lower "
            + (
                "engine.max_num_batched_tokens"
                if run.retention.is_bounded
                else "engine.max_model_len"
            )
        )
    if run.retention.is_bounded and plateau_occupancy(run) > 1:
        share = engine.kv_pool_blocks // workload.num_sessions
        raise PoolExhausted(
            f"retention.window_tokens={run.retention.window_tokens} with sink_tokens="
            f"{run.retention.sink_tokens} holds {session_plateau_blocks(run)} blocks a session, "
            f"over its share of {share} in a pool of {engine.kv_pool_blocks} for "
            f"{workload.num_sessions} sessions: lower the window, offer fewer sessions or "
            "raise engine.kv_pool_blocks"
        )


def _least_pool_blocks(run: RunConfig) -> int:
    """Pool size below which vLLM refuses to start: one session's admission bound."""
    held = plateau_blocks(
        run.retention,
        run.engine.block_size_tokens,
        run.engine.max_num_batched_tokens,
        max_model_len=run.engine.max_model_len,
    )
    assert held is not None, "max_model_len bounds every session"
    return held
