"""Teacher-forced scoring: a session is told a text, and every token's log-probability comes back.

The text goes in as the frames of a streaming session, each as soon as the one before is answered,
so that what is scored is what a call would see: the same sessions, the same scheduler, the same
eviction at the start of each frame. What the model itself would have said is dropped by the next
frame and never computed.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from harness.core.errors import EngineError
from harness.engines.sessions import request_id
from harness.engines.vllm_live import VllmEngine
from harness.vllm_plugin import SCORE_CHUNKS

if TYPE_CHECKING:
    from vllm import SamplingParams

Logprobs = npt.NDArray[np.float64]


class Scorer(Protocol):
    """Something that scores texts under the run's retention."""

    async def start(self) -> None:
        """Return when texts can be scored."""

    def score(self, session_id: int, token_ids: Sequence[int]) -> AsyncIterator[Logprobs]:
        """Log-probability of each token after the first, nats, frame by frame."""

    async def stop(self) -> None:
        """Release everything."""


class VllmScorer(VllmEngine):
    """Scores in a live vLLM engine; sessions may be scored at the same time."""

    async def start(self) -> None:
        """Start the engine with chunks of sessions scored. Raises: EngineError."""
        from harness.vllm_plugin.chunk_logprobs import install_chunk_logprobs

        os.environ[SCORE_CHUNKS] = "1"
        # Here as well: an engine core that is forked takes over what this process has registered.
        install_chunk_logprobs()
        await super().start()

    async def score(self, session_id: int, token_ids: Sequence[int]) -> AsyncIterator[Logprobs]:
        """Log-probability of each token after the first, nats, frame by frame."""
        from vllm.engine.protocol import StreamingInput
        from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

        if self._llm is None:
            raise EngineError("the engine is not running: start() was not called or failed")
        size = self._run.model.prompt_tokens_per_frame
        frames = [list(token_ids[start : start + size]) for start in range(0, len(token_ids), size)]
        # What each frame is followed by; nothing is known of the last, and its answer is not used.
        followers = [frame[0] for frame in frames[1:]] + [0]

        async def chunks() -> AsyncIterator[StreamingInput]:
            for frame, follower in zip(frames, followers, strict=True):
                # A copy: vLLM extends the list of a session's first chunk by the others.
                prompt = {"prompt_token_ids": list(frame)}
                yield StreamingInput(prompt=prompt, sampling_params=_scored(follower))

        answered = 0
        name = request_id(session_id, 0)
        try:
            async for output in self._llm.generate(chunks(), _scored(0), request_id=name):
                if not output.outputs or not output.outputs[0].token_ids:
                    continue
                frame, follower = frames[answered], followers[answered]
                answered += 1
                found = _within(frame, output.prompt_logprobs, name)
                if answered < len(frames):
                    found.append(output.outputs[0].logprobs[-1][follower].logprob)
                yield np.asarray(found, dtype=np.float64)
        except (EngineDeadError, EngineGenerateError) as error:
            raise EngineError(f"vLLM's engine core died: {error}") from error


def _within(frame: Sequence[int], logprobs: Sequence[Any] | None, name: str) -> list[float]:
    """Of a frame's own tokens after its first; the rest of the list is of earlier frames."""
    wanted = len(frame) - 1
    entries = list(logprobs or [])[-wanted:] if wanted else []
    if len(entries) < wanted or any(
        token not in entry for token, entry in zip(frame[1:], entries, strict=True)
    ):
        raise EngineError(
            f"request {name}: vLLM gave no log-probabilities for a frame of {len(frame)} tokens: "
            "is the harness installed (`pip install -e .`) and VLLM_PLUGINS unset?"
        )
    return [entry[token].logprob for token, entry in zip(frame[1:], entries, strict=True)]


def _scored(follower: int) -> SamplingParams:
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(
        max_tokens=1,
        temperature=0.0,
        ignore_eos=True,
        prompt_logprobs=0,
        logprob_token_ids=[follower],
        output_kind=RequestOutputKind.DELTA,
        detokenize=False,
    )
