"""What an engine must know to feed a model, and what a model must know of its sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Answered:
    """A frame that was answered.

    audio: (num_samples,) float32 at the model's sample rate.
    said: token ids of the answer that were computed; the last one sampled never is.
    """

    audio: npt.NDArray[np.float32]
    index: int
    said: Sequence[int]


class SessionFrontEnd(Protocol):
    """The client's side of one call; keeps whatever state the audio codec has."""

    def prompt(self, index: int, audio: npt.NDArray[np.float32]) -> Any:
        """The chunk for frame `index`, in a form that vLLM's StreamingInput takes.

        May be a coroutine, if a frame can only be built once the one before has been answered.

        audio: (num_samples,) float32 at the model's sample rate.
        """

    def recycled_prompt(
        self, kept: Sequence[Answered], index: int, audio: npt.NDArray[np.float32]
    ) -> Any:
        """The chunk that begins a new request of an old call: kept frames, then frame `index`.

        It has exactly the tokens that the request before held of these frames.
        """

    def receive(self, completion: Any) -> None:
        """Look at one of vLLM's CompletionOutputs as it arrives."""


class FrontEnd(Protocol):
    """One model's audio path, shared by all its sessions."""

    @property
    def engine_args(self) -> dict[str, Any]:
        """Arguments of vLLM's EngineArgs that the audio path needs."""

    @property
    def sampling_args(self) -> dict[str, Any]:
        """Arguments of vLLM's SamplingParams that the answers need, beyond their length."""

    def open_session(self, session_id: int) -> SessionFrontEnd:
        """The state of a new call."""
