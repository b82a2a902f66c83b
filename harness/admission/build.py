"""From a run's configuration to its gate."""

from __future__ import annotations

from collections.abc import Callable

from harness.admission.admit_all import AdmitAll
from harness.admission.aimd import Aimd, AimdSettings
from harness.admission.base import AdmissionController
from harness.admission.fixed_cap import FixedCap
from harness.admission.forecast_aware import ForecastAware
from harness.admission.gate import Gate
from harness.admission.signals import ContractLatency, GatewayWait, LatencySignal
from harness.capacity import session_plateau_blocks
from harness.config import AdmissionKind, RunConfig, SignalKind
from harness.core.pool_state import PoolState


def build_gate(run: RunConfig, pool: Callable[[], PoolState | None]) -> Gate:
    """The gate that a configuration asks for.

    pool: reads the engine's scheduler state.
    """
    signal = latency_signal(run) if run.admission.kind.uses_latency else None
    return Gate(build_controller(run), signal, pool)


def build_controller(run: RunConfig) -> AdmissionController:
    """The controller that a configuration asks for."""
    chosen = run.admission
    if chosen.kind is AdmissionKind.admit_all:
        return AdmitAll()
    if chosen.kind is AdmissionKind.fixed_cap:
        return FixedCap(run.most_admitted)
    aimd = Aimd(
        AimdSettings(
            target_s=chosen.target_share_of_budget * run.model.frame_budget_s,
            interval_s=chosen.interval_frames * run.model.frame_budget_s,
            percentile=chosen.percentile,
            increase_sessions=chosen.increase_sessions,
            decrease_factor=chosen.decrease_factor,
            floor_sessions=chosen.floor_sessions,
            ceiling_sessions=chosen.ceiling_sessions or run.engine.max_num_seqs,
            cuts_from_live=chosen.cuts_from_live,
        )
    )
    if chosen.kind is AdmissionKind.aimd:
        return aimd
    bounded = run.retention.is_bounded
    return ForecastAware(
        aimd,
        expected_session_s=chosen.expected_session_s,
        plateau_blocks=session_plateau_blocks(run) if bounded else None,
    )


def latency_signal(run: RunConfig) -> LatencySignal:
    """What the controller takes latency to be."""
    budget_s = run.model.frame_budget_s
    if run.admission.signal is SignalKind.gateway:
        return GatewayWait(run.diagnosis.tick_wait_share * budget_s)
    return ContractLatency(budget_s)
