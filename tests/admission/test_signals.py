"""What controllers see equals what the frame table says afterwards."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.admission.signals import ContractLatency, GatewayWait, LatencySignal
from harness.telemetry.frames import session_frames

BUDGET_S, TOKENS, WAIT_SHARE = 2.0, 3, 0.8
# Pauses before tokens; no token falls exactly on a release.
pauses = st.lists(st.floats(0.0101, 3.0), max_size=40)


def _seen(signal: LatencySignal, arrival_s: np.ndarray, num_frames: int) -> list[float]:
    happenings = sorted(
        [(k * BUDGET_S, "release") for k in range(num_frames)] + [(t, "token") for t in arrival_s]
    )
    seen: list[float] = []
    for instant_s, kind in happenings:
        seen += [latency for _, latency in signal.due(instant_s)]
        if kind == "release":
            known = signal.released(0, instant_s, TOKENS)
        else:
            known = signal.tokens(0, 1, instant_s)
        seen += [latency for _, latency in known]
    return seen + [latency for _, latency in signal.due(1e9)]


def _table(arrival_s: np.ndarray, num_frames: int):
    return session_frames(
        session_id=0,
        release_s=np.arange(num_frames) * BUDGET_S,
        released_s=np.arange(num_frames) * BUDGET_S,
        ingest_s=np.zeros(num_frames),
        expected=np.full(num_frames, TOKENS),
        arrival_s=arrival_s,
        arrived=np.ones(len(arrival_s), dtype=np.int64),
        frame_budget_s=BUDGET_S,
        silent_after_frames=3,
        tick_wait_share=WAIT_SHARE,
    )


def _arrivals(gaps: list[float], num_frames: int) -> np.ndarray:
    """Token instants, never before the frame that they answer was released."""
    instants, now_s = [], 0.003
    for index, gap in enumerate(gaps[: num_frames * TOKENS]):
        now_s = max(now_s + gap, index // TOKENS * BUDGET_S + 0.0077)
        instants.append(now_s)
    return np.array(instants)


@settings(max_examples=60, deadline=None)
@given(pauses)
def test_contract_latencies_are_the_frame_tables_and_misses_infinite(gaps: list[float]) -> None:
    arrival_s = _arrivals(gaps, 8)
    table = _table(arrival_s, 8)
    seen = _seen(ContractLatency(BUDGET_S), arrival_s, 8)
    expected = table["latency_s"].where(~table["missed"], math.inf)
    assert sorted(seen) == pytest.approx(sorted(expected))


@settings(max_examples=60, deadline=None)
@given(pauses)
def test_gateway_waits_are_the_frame_tables_and_never_reach_the_deadline(
    gaps: list[float],
) -> None:
    arrival_s = _arrivals(gaps, 8)
    seen = _seen(GatewayWait(WAIT_SHARE * BUDGET_S), arrival_s, 8)
    assert seen == pytest.approx(_table(arrival_s, 8)["tick_wait_s"].tolist())
    assert max(seen) <= WAIT_SHARE * BUDGET_S


def test_a_session_that_left_is_not_counted_as_late() -> None:
    for signal in (ContractLatency(BUDGET_S), GatewayWait(1.6)):
        signal.released(0, 0.0, TOKENS)
        signal.left(0)
        assert signal.due(100.0) == []
