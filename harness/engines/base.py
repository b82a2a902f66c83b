"""The border between the harness and whatever answers: one protocol.

`converse` has the shape of vLLM's `AsyncLLM.generate` with streaming input, so the replayer, the
telemetry and the diagnosis run unchanged on every engine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from harness.core.notices import Notice
from harness.core.pool_state import PoolState


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a session, as it is handed to an engine.

    audio: (num_samples,) float32 at the model's sample rate.
    output_tokens: tokens that the engine must answer with.
    """

    session_id: int
    index: int
    audio: npt.NDArray[np.float32]
    output_tokens: int


class Engine(Protocol):
    """Something that answers frames of audio with tokens.

    Raises, from any method: EngineError once the engine has died; it never comes back.
    """

    async def start(self) -> None:
        """Return when the engine answers; afterwards its pool is empty."""

    def converse(self, session_id: int, frames: AsyncIterator[Frame]) -> AsyncIterator[int]:
        """Answer a session's frames in order; yields how many tokens arrived, as they arrive.

        Closing the iterator aborts the session and returns its blocks.
        """

    def pool(self) -> PoolState | None:
        """The scheduler's latest state, also while it is stalled; None before its first step."""

    def notices(self) -> list[Notice]:
        """Every preemption and rotation since the start."""

    async def stop(self) -> None:
        """Release everything; safe to call at any time, more than once."""
