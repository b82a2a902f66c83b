"""Turns of a conversation on one resident request of a live engine: every token that was said."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.config import Regime
from harness.core.errors import EngineError
from harness.engines.sessions import request_id
from harness.engines.vllm_live import VllmEngine
from harness.models.chat import TurnChunk
from harness.models.front_ends.audio_item import AudioItemFrontEnd

if TYPE_CHECKING:
    from vllm import SamplingParams

# Of the next token: the likeliest, and one entry for all others. A lower bound of the entropy.
_NUM_LIKELIEST = 20


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer.

    entropy_nats: of each token's distribution, over its 20 likeliest and the rest as one.
    """

    token_ids: list[int]
    entropy_nats: list[float]


class VllmConversation(VllmEngine):
    """Each turn's chunk goes in once the turn before has been said to its end."""

    @property
    def audio_front_end(self) -> AudioItemFrontEnd:
        """What turns a spoken question into a chunk; only of a model that hears, once started."""
        assert isinstance(self._front_end, AudioItemFrontEnd)
        return self._front_end

    async def converse_in_turns(
        self, session_id: int, chunks: Sequence[TurnChunk], end_ids: Collection[int]
    ) -> AsyncIterator[Turn]:
        """Answers in order, greedy.

        end_ids: tokens that end an answer early in turn-based decoding, and are never said in
            free-running decoding.

        Raises: EngineError if the engine dies or leaves a turn unanswered.
        """
        from vllm.engine.protocol import StreamingInput
        from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

        if self._llm is None:
            raise EngineError("the engine is not running: start() was not called or failed")
        sampling, is_said = self._turn_sampling(end_ids), asyncio.Event()

        async def inputs() -> AsyncIterator[StreamingInput]:
            for chunk in chunks:
                is_said.clear()
                yield StreamingInput(prompt=chunk.prompt, sampling_params=sampling.clone())
                await is_said.wait()

        limit = self._run.model.output_tokens_per_frame
        said: list[int] = []
        entropies: list[float] = []
        num_turns, num_given = 0, 0
        try:
            async for output in self._llm.generate(
                inputs(), sampling, request_id=request_id(session_id, 0)
            ):
                for completion in output.outputs[:1]:
                    said += completion.token_ids
                    entropies += map(_entropy, completion.logprobs or [])
                if said and (len(said) >= limit or said[-1] in end_ids):
                    num_given += chunks[num_turns].num_tokens
                    _check_given(num_given, output.prompt_token_ids, session_id)
                    yield Turn(said, entropies)
                    said, entropies = [], []
                    num_turns += 1
                    is_said.set()
        except (EngineDeadError, EngineGenerateError) as error:
            raise EngineError(f"vLLM's engine core died: {error}") from error
        if num_turns < len(chunks):
            raise EngineError(
                f"session {session_id} ended after {num_turns} of {len(chunks)} turns"
            )

    def _turn_sampling(self, end_ids: Collection[int]) -> SamplingParams:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        is_free = self._run.workload.regime is Regime.free_running
        return SamplingParams(
            max_tokens=self._run.model.output_tokens_per_frame,
            temperature=0.0,
            logprobs=_NUM_LIKELIEST,
            ignore_eos=is_free,
            logit_bias=dict.fromkeys(end_ids, -100.0) if is_free else None,
            stop_token_ids=None if is_free else sorted(end_ids),
            output_kind=RequestOutputKind.DELTA,
            detokenize=False,
        )


def _check_given(num_given: int, prompt: Sequence[int] | None, session_id: int) -> None:
    """The place of every answer in its session rests on what the chunks' tokens are said to be."""
    if len(prompt or ()) != num_given:
        raise EngineError(
            f"session {session_id} was given {num_given} tokens by the chat layout and "
            f"{len(prompt or ())} by vLLM's count: harness/models/chat.py lays out another model's"
        )


def _entropy(alternatives: dict[int, Any]) -> float:
    likeliest = [math.exp(each.logprob) for each in alternatives.values()]
    parts = [*likeliest, max(0.0, 1.0 - sum(likeliest))]
    return -sum(part * math.log(part) for part in parts if part > 0)
