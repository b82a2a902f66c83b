"""The one clock of a run, on which every instant of every table lies.

All instants are `loop.time()` of the running event loop, in seconds. On a wall-clock loop that is
the system's monotonic clock, shared by every process of the machine, so an engine in another
process can stamp its state on the same axis. On a `VirtualEventLoop` time stands still while
anything is ready and jumps to the next timer otherwise, so hours of sleeping cost nothing and runs
are deterministic. Code that waits uses only `now()` and `sleep_until()`; threads and sockets do not
move virtual time.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def now() -> float:
    """Current instant of the running loop's clock, seconds."""
    return asyncio.get_running_loop().time()


def reader() -> Callable[[], float]:
    """The running loop's `now`, for those who ask it for every token."""
    return asyncio.get_running_loop().time


async def sleep_until(instant_s: float) -> None:
    """Return at `instant_s` or later; at once, without yielding, if it has passed."""
    delay_s = instant_s - now()
    if delay_s > 0:
        await asyncio.sleep(delay_s)


class _JumpingSelector(selectors.SelectSelector):
    """Advances virtual time by the timeout it was asked to wait for."""

    def __init__(self) -> None:
        super().__init__()
        self.instant_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("virtual time is stuck: no task is ready and no timer is set")
        self.instant_s += max(0.0, timeout)
        # A loop always listens to its own wake-up pipe, which has nothing to say to one that never
        # sleeps; asking the system is for those who listen to more.
        return super().select(0) if len(self.get_map()) > 1 else []


class VirtualEventLoop(asyncio.SelectorEventLoop):
    """An asyncio event loop whose `time()` is virtual and starts at 0.

    Leans on asyncio/base_events.py (Python 3.11): `_ready`, `_closed`.
    """

    def __init__(self) -> None:
        self._virtual = _JumpingSelector()
        super().__init__(self._virtual)
        # asyncio runs timers that are due within one clock resolution; virtual time needs no slack.
        self._clock_resolution = 1e-9

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._virtual.instant_s

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Run a callback in the next round. As asyncio's, less what only its debug mode needs."""
        if self._closed:  # type: ignore[attr-defined]
            return super().call_soon(callback, *args, context=context)
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualEventLoop) as runner:
        return runner.run(main)
