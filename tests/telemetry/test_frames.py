import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.telemetry.frames import session_frames, silent_frames, tick_waits, token_instants


def _session(
    release: list[float],
    arrivals: list[tuple[float, int]],
    *,
    expected: int = 2,
    budget_s: float = 1.0,
) -> pd.DataFrame:
    return session_frames(
        session_id=0,
        release_s=np.array(release),
        released_s=np.array(release),
        ingest_s=np.zeros(len(release)),
        expected=np.full(len(release), expected),
        arrival_s=np.array([t for t, _ in arrivals]),
        arrived=np.array([n for _, n in arrivals], dtype=np.int64),
        frame_budget_s=budget_s,
        silent_after_frames=3,
        tick_wait_share=0.8,
    )


def test_tokens_answer_frames_in_order() -> None:
    first, last, tokens = token_instants(
        np.array([0.1, 0.3]), np.array([1, 2]), np.array([2, 2, 2])
    )
    assert first[:2].tolist() == [0.1, 0.3]
    assert np.isnan(first[2])
    assert last[0] == 0.3
    assert np.isnan(last[1:]).all()
    assert tokens.tolist() == [2, 1, 0]


def test_latency_of_a_frame_that_never_completed_is_null_and_the_frame_is_missed() -> None:
    frames = _session([0.0, 1.0], [(0.2, 2), (1.5, 1)])
    assert frames["latency_s"].tolist()[0] == pytest.approx(0.2)
    assert np.isnan(frames["latency_s"].iloc[1])
    assert frames["missed"].tolist() == [False, True]
    assert frames["empty"].tolist() == [False, False]


def test_a_frame_complete_exactly_at_its_deadline_is_not_missed() -> None:
    frames = _session([0.0, 1.0], [(1.0, 2), (2.0001, 2)])
    assert frames["missed"].tolist() == [False, True]


def test_late_tokens_are_misses_but_not_silence() -> None:
    # Every frame is answered 2.5 B late: overloaded, yet the caller hears something in each frame.
    release = [float(k) for k in range(6)]
    frames = _session(release, [(k + 2.5, 2) for k in range(6)])
    assert frames["missed"].all()
    assert frames["empty"].tolist() == [True, True, *[False] * 4]
    assert not frames["silent"].any()
    assert frames["backlog"].tolist() == [1, 2, 2, 2, 2, 2]


def test_silence_starts_with_the_first_of_three_empty_frames() -> None:
    frames = _session([0.0, 1.0, 2.0, 3.0, 4.0], [(0.2, 2), (1.2, 2)])
    assert frames["silent"].tolist() == [False, False, True, True, True]
    assert silent_frames(np.array([True, True, False, True]), 3).tolist() == [False] * 4


def test_staleness_is_the_age_of_the_newest_answered_audio() -> None:
    frames = _session([0.0, 1.0, 2.0], [(0.5, 2)])
    assert frames["staleness_s"].tolist() == [1.0, 2.0, 3.0]


def test_the_gateway_sees_zero_then_the_limit_and_never_a_miss() -> None:
    release = np.arange(8.0)
    arrival = np.array([0.1, 1.1, 2.1])
    waits = tick_waits(release, arrival, 0.8)
    assert waits.tolist() == pytest.approx([0.1, 0.1, 0.1, *[0.8] * 5])
    # One token left over from an earlier frame hides a stall for one more tick.
    assert tick_waits(release, np.array([0.1, 0.9]), 0.8)[1] == 0.0


@given(
    gaps=st.lists(st.floats(0.001, 2.0), min_size=0, max_size=40),
    sizes=st.lists(st.integers(1, 5), min_size=40, max_size=40),
    num_frames=st.integers(1, 12),
)
def test_no_token_is_lost_or_invented(gaps: list[float], sizes: list[int], num_frames: int) -> None:
    arrivals = list(zip(np.cumsum(gaps).tolist(), sizes, strict=False))
    frames = _session([float(k) for k in range(num_frames)], arrivals, expected=3)
    delivered = sum(size for _, size in arrivals)
    assert frames["tokens"].sum() == min(delivered, 3 * num_frames)
    done = frames["last_token_s"].dropna()
    assert done.is_monotonic_increasing
    assert (frames["tokens"] == 3).sum() == len(done)
    assert (frames["tick_wait_s"] <= 0.8).all()
    assert (frames.loc[frames["silent"], "empty"]).all()
