"""Can a run work? Asked before anything is written or started, and by a dry run."""

from __future__ import annotations

from harness.capacity import check_capacity
from harness.config import EngineKind, Regime, RunConfig
from harness.core.errors import ConfigError
from harness.engines.sim_args import check_simulation
from harness.engines.vllm_args import check_device
from harness.models.chat import check_converses
from harness.models.front_ends import check_is_served, check_recycles
from harness.workload.told import check_is_told

_ENGINES = {
    Regime.replay: (EngineKind.vllm, EngineKind.sim, EngineKind.echo),
    Regime.score: (EngineKind.vllm, EngineKind.reference),
    Regime.free_running: (EngineKind.vllm,),
    Regime.turns: (EngineKind.vllm,),
}


def check(run: RunConfig) -> None:
    """Refuse a run that cannot work on this machine. Raises: ConfigError or PoolExhausted."""
    check_design(run)
    if run.engine.kind is EngineKind.vllm:
        check_device(run)
    if run.engine.kind is EngineKind.sim:
        check_simulation(run)


def check_design(run: RunConfig) -> None:
    """Refuse a run that cannot work on any machine. Raises: ConfigError or PoolExhausted."""
    _check_regime(run)
    check_capacity(run)
    if run.engine.kind is EngineKind.vllm:
        check_is_served(run.model)
        if run.retention.is_recycled:
            check_recycles(run.model)


def _check_regime(run: RunConfig) -> None:
    engine, regime, model = run.engine.kind, run.workload.regime, run.model
    if engine not in _ENGINES[regime]:
        fitting = " or ".join(kind.name for kind in _ENGINES[regime])
        raise ConfigError(
            f"engine={engine.name} does not do workload.regime={regime.name}: choose {fitting}"
        )
    if engine is EngineKind.reference and not model.is_probe:
        raise ConfigError(
            f"engine=reference is for a probe, and model={model.name} is none: choose engine=vllm"
        )
    if regime is Regime.replay:
        if engine is EngineKind.vllm and model.other_tokens_per_frame:
            raise ConfigError(
                f"model.other_tokens_per_frame={model.other_tokens_per_frame} is not replayed by a "
                "live engine, whose frames are audio alone: set it to 0, or choose engine=sim"
            )
        return
    if run.retention.is_recycled:
        raise ConfigError(
            f"retention=recycle cuts a call's frames, and workload.regime={regime.name} has one "
            "request a session: choose retention=window or retention=sink_window"
        )
    if regime is Regime.score:
        check_is_told(model)
    else:
        check_converses(model)
