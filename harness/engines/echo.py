"""An engine that answers at once and holds no memory: the test double and the null of benchmarks.

Give it a `service_time_s` to make it slow and a `dies_at_frame` to make it die.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from harness.core import clock
from harness.core.errors import EngineError
from harness.core.notices import Notice
from harness.core.pool_state import PoolState
from harness.engines.base import Frame


class EchoEngine:
    """Answers every frame with the tokens it asks for, after `service_time_s` seconds.

    mute_from_frame: from this frame on, nothing is answered (a stall, without an engine).
    dies_at_frame: the first session to reach this frame kills the engine.
    """

    def __init__(
        self,
        *,
        service_time_s: float = 0.0,
        mute_from_frame: int | None = None,
        dies_at_frame: int | None = None,
        pool_blocks: int = 100,
    ) -> None:
        self._service_time_s = service_time_s
        self._mute_from_frame = mute_from_frame
        self._dies_at_frame = dies_at_frame
        self._pool_blocks = pool_blocks
        self._num_steps = 0
        self._is_dead = False

    async def start(self) -> None:
        """Nothing to start."""

    async def converse(self, session_id: int, frames: AsyncIterator[Frame]) -> AsyncIterator[int]:
        """Answer each frame as one chunk of tokens."""
        async for frame in frames:
            if self._dies_at_frame is not None and frame.index >= self._dies_at_frame:
                self._is_dead = True
            if self._is_dead:
                raise EngineError(f"the echo engine died at frame {frame.index}, as configured")
            if self._mute_from_frame is not None and frame.index >= self._mute_from_frame:
                continue
            if self._service_time_s:
                await asyncio.sleep(self._service_time_s)
            self._num_steps += 1
            yield frame.output_tokens

    def pool(self) -> PoolState | None:
        """An empty pool, or a full one with every session waiting once the engine is mute."""
        mute = self._mute_from_frame is not None and self._num_steps > 0
        return PoolState(
            stamp_s=clock.now(),
            total_blocks=self._pool_blocks,
            used_blocks=self._pool_blocks if mute else 0,
            num_running=0,
            num_waiting=int(mute),
            num_paused=0,
            num_preempted_waiting=0,
            num_preemptions=0,
            num_steps=self._num_steps,
            num_scheduled_tokens=0,
        )

    def notices(self) -> list[Notice]:
        """An echo takes nothing away."""
        return []

    async def stop(self) -> None:
        """Nothing to stop."""
