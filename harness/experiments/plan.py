"""What a run would load, the pool it would get and what would become of it, without running it."""

from __future__ import annotations

from rich.table import Table

from harness.analysis.runs import retention_label
from harness.capacity import planned_pool_blocks, session_plateau_blocks
from harness.config import Regime, RunConfig, ScaleName
from harness.core.errors import HarnessError
from harness.experiments.checks import check_design
from harness.workload import growth

_GB = 1e9
_UNKNOWN = "unknown: name a GPU with hardware=..."


def plan(run: RunConfig) -> Table:
    """A run's plan as a table that a person reads before spending GPU hours."""
    model, engine, workload = run.model, run.engine, run.workload
    is_replayed = workload.regime is Regime.replay
    pool_blocks = planned_pool_blocks(run)
    table = Table(title=f"{model.title}: {retention_label(run.retention)}", title_justify="left")
    table.add_column("")
    table.add_column("plan")
    rows = {
        "weights": _weights(run),
        "calls": _calls(run),
        "growth": f"{growth.frame_kv_tokens(run):.4g} tokens a frame"
        + (f", {growth.session_tokens_per_s(run):.1f} a second a call" if is_replayed else ""),
        "longest request": f"{run.max_model_len} tokens",
        "KV cache": f"{model.kv.bytes_per_token:,} bytes a token",
        "a call holds": _holding(run, pool_blocks),
        "pool": _UNKNOWN if pool_blocks is None else _pool(run, pool_blocks),
        "forecast for all calls from the start"
        if workload.arrivals.is_open
        else "forecast": _UNKNOWN if pool_blocks is None else _forecast(run, pool_blocks),
        "checks": _checks(run),
    }
    for label, text in rows.items():
        table.add_row(label, text)
    table.caption = f"hardware: {run.hardware.title}; dtype {engine.dtype}"
    return table


def _calls(run: RunConfig) -> str:
    workload = run.workload
    if workload.regime is Regime.replay:
        return (
            f"{workload.num_sessions} for {workload.duration_s:g} s, "
            f"a frame every {run.model.frame_budget_s:g} s"
        )
    heard = "in words" if run.model.is_probe else f"aloud, from {', '.join(workload.corpora)}"
    what = {
        Regime.score: "frames of a text",
        Regime.free_running: f"questions ({heard}), answered without end",
        Regime.turns: f"questions ({heard}), answered in turns",
    }[workload.regime]
    return f"{workload.num_sessions}, each {run.num_frames} {what}, as fast as they are answered"


def _holding(run: RunConfig, pool_blocks: int | None) -> str:
    blocks, block = session_plateau_blocks(run), run.engine.block_size_tokens
    size = run.model.kv.pool_bytes(blocks, block) / _GB
    fit = "" if pool_blocks is None else f"; {pool_blocks // blocks} calls fit"
    return f"at most {blocks * block:,} tokens, {size:.2f} GB{fit}"


def _pool(run: RunConfig, pool_blocks: int) -> str:
    tokens = pool_blocks * run.engine.block_size_tokens
    block = run.engine.block_size_tokens
    size = run.model.kv.pool_bytes(pool_blocks, block) / _GB
    return f"{pool_blocks:,} blocks of {block} = {tokens:,} tokens, {size:.1f} GB"


def _forecast(run: RunConfig, pool_blocks: int) -> str:
    """Saturation by arithmetic, as `harness predict` has it with an interval."""
    saturation = growth.saturation(run, pool_blocks)
    final = growth.final_occupancy(run, pool_blocks)
    end = f"occupancy ends at {final:.2f}"
    if run.workload.regime is not Regime.replay:
        # Nothing is released on time, so nothing is full at an instant.
        return f"{end}: the pool {'overflows' if final > 1 else 'is never full'}"
    if saturation is None:
        return f"{end}: the pool is never full"
    if saturation.median_s > run.workload.duration_s:
        return f"{end}: the pool would be full after {saturation.median_s:.0f} s"
    return f"the pool is full after {saturation.median_s:.0f} s, then the calls go silent"


def _checks(run: RunConfig) -> str:
    try:
        check_design(run)
    except HarnessError as error:
        return f"refused: {error}"
    return "passed"


def _weights(run: RunConfig) -> str:
    weights = run.model.weights
    if weights.packaged is not None:
        source = f"{weights.packaged.package} {weights.packaged.version}"
        return f"{weights.repo} out of the package {source} ({weights.licence})"
    if run.scale is ScaleName.full:
        return f"{weights.repo} at {weights.revision} ({weights.licence})"
    return "tiny random checkpoint, made here"
