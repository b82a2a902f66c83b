"""The forecast-aware controller, the fixed cap, and the gate around any of them."""

import pytest

from harness.admission.admit_all import AdmitAll
from harness.admission.aimd import Aimd
from harness.admission.base import AdmissionController, Arrival
from harness.admission.build import build_controller
from harness.admission.fixed_cap import FixedCap
from harness.admission.forecast_aware import MIN_SAMPLES, ForecastAware
from harness.admission.gate import Gate
from harness.composition import compose
from harness.config import (
    AdmissionConfig,
    AdmissionKind,
    ArrivalKind,
    SessionLengthKind,
    WorkloadConfig,
)
from harness.core.errors import ConfigError
from harness.core.pool_state import PoolState

GROWTH, POOL = 2.0, 10_000


def _pool(used_blocks: float) -> PoolState:
    return PoolState(
        stamp_s=0.0,
        total_blocks=POOL,
        used_blocks=round(used_blocks),
        num_running=0,
        num_waiting=0,
        num_paused=0,
        num_preempted_waiting=0,
        num_preemptions=0,
        num_steps=1,
        num_scheduled_tokens=0,
    )


def _ramp(controller: AdmissionController, *, plateau: float, num_arrivals: int = 200) -> int:
    """Endless calls, one a second, each growing by GROWTH blocks a second; how many get in."""
    starts: list[float] = []
    for index in range(num_arrivals):
        now_s = float(index)
        ages = [now_s - start for start in starts]
        arrival = Arrival(
            session_id=index,
            instant_s=now_s,
            num_live=len(starts),
            total_age_s=sum(ages),
            pool=_pool(sum(min(plateau, GROWTH * age) for age in ages)),
        )
        if controller.decide(arrival).admit:
            starts.append(now_s)
    return len(starts)


def test_forecast_aware_fills_no_unbounded_pool_within_a_sessions_length() -> None:
    expected_s = 100.0
    controller = ForecastAware(AdmitAll(), expected_session_s=expected_s, plateau_blocks=None)
    admitted = _ramp(controller, plateau=float("inf"))
    growth = controller.growth_blocks_per_s
    assert growth == pytest.approx(GROWTH, rel=0.05)
    # The analytic bound: n sessions one second apart, all of them `expected_s` longer.
    assert admitted * GROWTH * expected_s <= POOL * 1.05
    assert admitted > MIN_SAMPLES


def test_forecast_aware_lets_in_what_a_bound_keeps_below_the_pool() -> None:
    controller = ForecastAware(AdmitAll(), expected_session_s=100.0, plateau_blocks=40)
    assert _ramp(controller, plateau=40.0) == 200
    tight = ForecastAware(AdmitAll(), expected_session_s=100.0, plateau_blocks=100)
    assert POOL // 100 <= _ramp(tight, plateau=100.0) <= POOL // 100 + 5


def test_forecast_aware_guesses_nothing_before_it_has_seen_enough() -> None:
    controller = ForecastAware(AdmitAll(), expected_session_s=1e9, plateau_blocks=None)
    assert _ramp(controller, plateau=float("inf"), num_arrivals=MIN_SAMPLES) == MIN_SAMPLES
    assert controller.growth_blocks_per_s is None


def test_a_fixed_cap_counts_who_is_in_not_who_came() -> None:
    gate = Gate(FixedCap(2), None, lambda: None)
    admitted = [gate.arrives(session, float(session))[1].admit for session in range(4)]
    assert admitted == [True, True, False, False]
    gate.leaves(0)
    assert gate.arrives(4, 5.0)[1].admit
    assert gate.num_live == 2


def test_the_gate_tells_ages_of_those_who_are_in() -> None:
    gate = Gate(FixedCap(9), None, lambda: None)
    for session, instant_s in ((0, 0.0), (1, 2.0), (2, 3.0)):
        gate.arrives(session, instant_s)
    gate.leaves(1)
    arrival, _ = gate.arrives(3, 10.0)
    assert arrival.total_age_s == pytest.approx(10.0 + 7.0)


def test_aimd_is_set_in_units_of_the_models_frame_budget() -> None:
    run = compose(["admission=aimd", "model=moshi", "admission.interval_frames=5"]).run_config
    controller = build_controller(run)
    assert isinstance(controller, Aimd)
    chosen = controller.settings
    assert chosen.target_s == pytest.approx(0.3 * 0.08)
    assert chosen.interval_s == pytest.approx(5 * 0.08)
    assert chosen.ceiling_sessions == run.engine.max_num_seqs


@pytest.mark.parametrize(
    ("section", "values", "words"),
    [
        (AdmissionConfig, {"kind": AdmissionKind.fixed_cap}, "session_cap=None must be at least 1"),
        (AdmissionConfig, {"percentile": 1.0}, "percentile=1.0 must lie between 0 and 1"),
        (AdmissionConfig, {"floor_sessions": 0.0}, "floor_sessions=0.0 must be at least 1"),
        (AdmissionConfig, {"ceiling_sessions": 2.0}, "must be at least floor_sessions=8.0"),
        (WorkloadConfig, {"arrivals": ArrivalKind.poisson}, "rate_per_s=None must be above 0"),
        (WorkloadConfig, {"arrival_rate_per_s": 2.0}, "no meaning for workload.arrivals=staggered"),
        (
            WorkloadConfig,
            {"session_lengths": SessionLengthKind.data},
            "no meaning for workload.arrivals",
        ),
        (
            WorkloadConfig,
            {
                "arrivals": ArrivalKind.constant,
                "arrival_rate_per_s": 2.0,
                "session_lengths": SessionLengthKind.exponential,
            },
            "workload.mean_session_s=None must be above 0",
        ),
    ],
)
def test_an_impossible_setting_is_named(
    section: type, values: dict[str, object], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        section(**values)
