"""Reads an engine's scheduler state on the run's clock, also while nothing moves."""

from __future__ import annotations

from collections.abc import Callable

from harness.core import clock
from harness.core.pool_state import PoolState
from harness.telemetry.recorder import Recorder

MAX_INTERVAL_S = 0.25
SAMPLES_PER_FRAME = 4


def sampling_interval_s(frame_budget_s: float) -> float:
    """At least four samples a frame, and at least four a second."""
    return min(frame_budget_s / SAMPLES_PER_FRAME, MAX_INTERVAL_S)


async def sample_pool(
    read: Callable[[], PoolState | None],
    recorder: Recorder,
    *,
    interval_s: float,
    read_host_bytes: Callable[[], int] | None = None,
) -> None:
    """Record what `read` returns every `interval_s` seconds until cancelled.

    read_host_bytes: host memory at that instant; None where no real engine runs.
    """
    next_s = clock.now()
    while True:
        state = read()
        if state is not None:
            host_bytes = read_host_bytes() if read_host_bytes else None
            recorder.pool(clock.now(), state, host_bytes=host_bytes)
        next_s = max(next_s + interval_s, clock.now())
        await clock.sleep_until(next_s)
