"""Properties of the AIMD controller, on signals made by hand and by Hypothesis."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from harness.admission.aimd import Aimd, AimdSettings, nearest_rank
from harness.admission.base import Arrival, Interval, SeenLatency
from harness.core.digests import digest
from harness.core.seeding import named_rng

TARGET_S, INTERVAL_S = 0.6, 2.0
SETTINGS = AimdSettings(
    target_s=TARGET_S,
    interval_s=INTERVAL_S,
    percentile=0.95,
    increase_sessions=5.0,
    decrease_factor=0.8,
    floor_sessions=4.0,
    ceiling_sessions=40.0,
)
CLEAN_S, CONGESTED_S = 0.1, 1.0
few = hypothesis_settings(max_examples=40, deadline=None)

latencies = st.floats(0.0, 3.0) | st.just(math.inf)
settings = st.builds(
    AimdSettings,
    target_s=st.floats(0.1, 1.0),
    interval_s=st.floats(0.1, 5.0),
    percentile=st.floats(0.05, 0.99),
    increase_sessions=st.floats(0.1, 50.0),
    decrease_factor=st.floats(0.1, 0.95),
    floor_sessions=st.floats(1.0, 10.0),
    ceiling_sessions=st.floats(10.0, 500.0),
    cuts_from_live=st.booleans(),
)
# What happens next: seconds until then, and the latency of a frame, or None for an arrival.
events = st.lists(st.tuples(st.floats(0.0, 3.0), st.none() | latencies), max_size=120)


def _drive(
    controller: Aimd, happenings: list[tuple[float, float | None]]
) -> list[tuple[int, bool]]:
    """Endless sessions against the controller; returns (live before, admitted) of every arrival."""
    now_s, num_live, decided = 0.0, 0, []
    for pause_s, latency_s in happenings:
        now_s += pause_s
        if latency_s is None:
            arrival = Arrival(session_id=len(decided), instant_s=now_s, num_live=num_live)
            decision = controller.decide(arrival)
            decided.append((num_live, decision.admit))
            num_live += decision.admit
        else:
            controller.observe(
                SeenLatency(session_id=0, instant_s=now_s, latency_s=latency_s, num_live=num_live)
            )
    return decided


def _intervals(controller: Aimd, signal_s: float, count: int, *, num_live: int = 99) -> None:
    """`count` whole intervals with one frame each, after those that were there already."""
    start_s = controller.intervals[-1].end_s if controller.intervals else 0.0
    for index in range(count + 1):
        instant_s = start_s + index * INTERVAL_S + (0.5 * INTERVAL_S if index < count else 0.0)
        if not controller.intervals and index == 0:
            controller.decide(Arrival(session_id=0, instant_s=start_s, num_live=num_live))
        if index < count:
            controller.observe(
                SeenLatency(
                    session_id=0, instant_s=instant_s, latency_s=signal_s, num_live=num_live
                )
            )
        else:
            controller.decide(Arrival(session_id=0, instant_s=instant_s, num_live=num_live))


@few
@given(settings, events)
def test_the_cap_stays_within_its_limits(
    chosen: AimdSettings, happenings: list[tuple[float, float | None]]
) -> None:
    controller = Aimd(chosen)
    _drive(controller, happenings)
    for interval in controller.intervals:
        assert chosen.floor_sessions <= interval.session_cap <= chosen.ceiling_sessions


@few
@given(settings, events)
def test_nobody_is_admitted_over_the_cap_and_nobody_shed_below_it(
    chosen: AimdSettings, happenings: list[tuple[float, float | None]]
) -> None:
    controller = Aimd(chosen)
    now_s, num_live = 0.0, 0
    for pause_s, latency_s in happenings:
        now_s += pause_s
        if latency_s is not None:
            seen = SeenLatency(
                session_id=0, instant_s=now_s, latency_s=latency_s, num_live=num_live
            )
            controller.observe(seen)
            continue
        decision = controller.decide(Arrival(session_id=0, instant_s=now_s, num_live=num_live))
        num_live += decision.admit
        assert decision.session_cap is not None
        if decision.admit:
            assert num_live <= decision.session_cap
        else:
            assert num_live + 1 > decision.session_cap


@few
@given(settings, events)
def test_every_interval_moves_the_cap_once_by_the_step_or_the_factor(
    chosen: AimdSettings, happenings: list[tuple[float, float | None]]
) -> None:
    controller = Aimd(chosen)
    _drive(controller, happenings)
    before = chosen.floor_sessions
    for interval in controller.intervals:
        assert interval.signal_s is not None
        assert interval.is_congested == (interval.signal_s > chosen.target_s)
        assert interval.session_cap == pytest.approx(_expected(before, interval, chosen))
        before = interval.session_cap
    ends = [interval.end_s for interval in controller.intervals]
    assert all(b - a >= 0.999 * chosen.interval_s for a, b in pairwise(ends))


def _expected(before: float, interval: Interval, chosen: AimdSettings) -> float:
    if not interval.is_congested:
        return min(chosen.ceiling_sessions, before + chosen.increase_sessions)
    base = min(before, interval.num_live) if chosen.cuts_from_live else before
    return max(chosen.floor_sessions, chosen.decrease_factor * base)


def test_the_cap_grows_by_the_step_per_clean_interval_and_is_cut_once_per_congested_one() -> None:
    controller = Aimd(SETTINGS)
    _intervals(controller, CLEAN_S, 3)
    assert controller.session_cap == 4 + 3 * 5
    _intervals(controller, CONGESTED_S, 1)
    assert controller.session_cap == pytest.approx(19 * 0.8)
    _intervals(controller, CLEAN_S, 1)
    assert controller.session_cap == pytest.approx(19 * 0.8 + 5)


@pytest.mark.parametrize(("signal_s", "cap"), [(TARGET_S, 14.0), (TARGET_S + 1e-6, 9 * 0.8)])
def test_an_interval_is_congested_above_the_target_and_not_at_it(
    signal_s: float, cap: float
) -> None:
    controller = Aimd(SETTINGS)
    _intervals(controller, CLEAN_S, 1)
    _intervals(controller, signal_s, 1)
    assert controller.session_cap == pytest.approx(cap)


def test_many_late_frames_of_one_interval_cut_once() -> None:
    controller = Aimd(SETTINGS)
    _intervals(controller, CLEAN_S, 4)
    start_s = controller.intervals[-1].end_s
    for _ in range(50):
        controller.observe(
            SeenLatency(session_id=0, instant_s=start_s + 1, latency_s=CONGESTED_S, num_live=9)
        )
    controller.decide(Arrival(session_id=1, instant_s=start_s + INTERVAL_S, num_live=9))
    assert controller.session_cap == pytest.approx(24 * 0.8)


def test_a_constant_clean_signal_reaches_the_ceiling_in_the_analytic_number_of_intervals() -> None:
    count = math.ceil((40 - 4) / 5)
    controller = Aimd(SETTINGS)
    _intervals(controller, CLEAN_S, count - 1)
    assert controller.session_cap < 40
    _intervals(controller, CLEAN_S, 1)
    assert controller.session_cap == 40
    _intervals(controller, CLEAN_S, 5)
    assert controller.session_cap == 40


def test_a_constant_congested_signal_reaches_the_floor_in_the_analytic_number_of_intervals() -> (
    None
):
    controller = Aimd(SETTINGS)
    _intervals(controller, CLEAN_S, 20)
    count = math.ceil(math.log(4 / 40) / math.log(0.8))
    _intervals(controller, CONGESTED_S, count - 1)
    assert controller.session_cap > 4
    _intervals(controller, CONGESTED_S, 1)
    assert controller.session_cap == 4


@pytest.mark.parametrize("capacity", [12, 20, 33])
def test_a_signal_congested_above_k_sessions_settles_into_the_analytic_sawtooth(
    capacity: int,
) -> None:
    # Calls are short and many: as many are in as the cap allows.
    controller = Aimd(SETTINGS)
    controller.decide(Arrival(session_id=0, instant_s=0.0, num_live=0))
    caps = []
    for index in range(200):
        controller.decide(Arrival(session_id=0, instant_s=index * INTERVAL_S, num_live=0))
        num_live = math.floor(controller.session_cap)
        signal_s = CONGESTED_S if num_live > capacity else CLEAN_S
        instant_s = (index + 0.5) * INTERVAL_S
        seen = SeenLatency(session_id=0, instant_s=instant_s, latency_s=signal_s, num_live=num_live)
        controller.observe(seen)
        caps.append(controller.session_cap)
    settled = caps[50:]
    assert min(settled) >= 0.8 * capacity
    assert max(settled) <= capacity + 1 + 5
    assert max(settled) > capacity


def test_a_cap_that_ran_ahead_of_the_arrivals_bites_at_the_first_cut_only_if_cut_from_live() -> (
    None
):
    for cuts_from_live, cap in ((False, 0.8 * 40), (True, 0.8 * 10)):
        controller = Aimd(replace(SETTINGS, cuts_from_live=cuts_from_live))
        _intervals(controller, CLEAN_S, 20, num_live=10)
        _intervals(controller, CONGESTED_S, 1, num_live=10)
        assert controller.session_cap == pytest.approx(cap)


def test_an_interval_without_a_frame_leaves_the_cap_alone() -> None:
    controller = Aimd(SETTINGS)
    _intervals(controller, CLEAN_S, 2)
    before = controller.session_cap
    controller.decide(Arrival(session_id=1, instant_s=1000.0, num_live=2))
    assert controller.session_cap == before


def test_a_frame_that_missed_its_deadline_counts_as_the_largest_latency() -> None:
    assert nearest_rank([0.1] * 18 + [math.inf] * 2, 0.95) == math.inf
    assert nearest_rank([0.1] * 19 + [math.inf], 0.95) == 0.1
    assert nearest_rank([3.0, 1.0, 2.0], 0.5) == 2.0


def _trace(seed: int) -> str:
    rng = named_rng(seed, "latencies")
    controller = Aimd(SETTINGS)
    happenings = [
        (float(rng.exponential(0.3)), None if rng.random() < 0.3 else float(rng.exponential(0.4)))
        for _ in range(500)
    ]
    return digest([_drive(controller, happenings), list(controller.intervals)])


def test_ten_seeds_give_ten_traces_and_each_seed_one() -> None:
    first = [_trace(seed) for seed in range(10)]
    assert len(set(first)) == 10
    assert [_trace(seed) for seed in range(10)] == first
