"""Moshi: Mimi turns each 80 ms into 8 codes, and the model's own last answer goes in with them.

The feedback. Frame k is computed from the user's codes of frame k and the model's own text and
codes of frame k - 1: the model hears itself. These nine ids come to the client as the answer, and
the client puts them into the next prompt, so `prompt` waits for the answer to the frame before. A
frame is still *released* on its instant, whatever the engine did, and its latency still counts from
there; if the engine is late, the frame waits here instead of in vLLM's `streaming_queue`, which
would hold it back just as long: vLLM, too, computes a call's frames strictly one after the other.
So what is said never depends on when: a late engine gives the same ids as a fast one.

The alternatives were worse. Keeping the feedback in the worker needs the worker's model to know
requests, and loses it when a call is preempted: vLLM then computes the call again from its prompts.
Sending a frame with whatever answers are in changes what the model says when it is late.
Cost: one trip between client and engine for each frame that catches up, about a millisecond.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.core.errors import ConfigError
from harness.models.catalog import ModelSpec
from harness.models.front_ends.base import Answered
from harness.models.moshi.answers import AnswerIds
from harness.models.moshi.codec import (
    CODEC_DIRECTORY,
    FRAME_SAMPLES,
    HUB_NAME,
    SAMPLE_RATE_HZ,
    Mimi,
    MimiEncoder,
)
from harness.models.moshi.config import MoshiConfig
from harness.models.moshi.processor import frame_input
from harness.models.moshi.streams import SpokenFrame, TokenStreams

# Kyutai's repositories hold no configuration that vLLM could read; this is Moshi 7B's.
PUBLISHED_CONFIG = Path(__file__).parents[1] / "moshi" / "published"


class MoshiFrontEnd:
    """Mimi, and the ids of the checkpoint; calls share both.

    checkpoint: directory with Kyutai's weights, our config.json and Mimi in `mimi`; or the name of
        Kyutai's repository on the hub, which goes with our configuration of Moshi 7B and Mimi's own
        repository.

    Raises: ConfigError if a frame is not one of Mimi's.
    """

    def __init__(self, model: ModelSpec, checkpoint: Path) -> None:
        if (model.sample_rate_hz, model.frame_samples) != (SAMPLE_RATE_HZ, FRAME_SAMPLES):
            raise ConfigError(
                f"model.frame_budget_s={model.frame_budget_s} at model.sample_rate_hz="
                f"{model.sample_rate_hz} is not one of Mimi's frames: use 0.08 s at 24000 Hz"
            )
        # A published repository may have a config.json too, of Kyutai's own format.
        is_local = (checkpoint / CODEC_DIRECTORY).is_dir()
        self._config_path = checkpoint if is_local else PUBLISHED_CONFIG
        self._codec_source = str(checkpoint / CODEC_DIRECTORY) if is_local else HUB_NAME
        config = MoshiConfig.from_pretrained(self._config_path)
        self._ids = AnswerIds(
            text_vocab_size=config.text_vocab_size,
            codebook_size=config.codebook_size,
            num_codebooks=config.num_codebooks,
        )
        self._call_numbers = itertools.count()

    @functools.cached_property
    def codec(self) -> Mimi:
        """Loaded with the first call, since the engine is forked from a process without threads."""
        return Mimi(self._codec_source, num_codebooks=self._ids.num_codebooks)

    @property
    def engine_args(self) -> dict[str, Any]:
        """No tokenizer, and no cache of inputs: no frame is ever sent twice."""
        return {
            "hf_config_path": str(self._config_path),
            "skip_tokenizer_init": True,
            "limit_mm_per_prompt": {"audio": 1},
            "mm_processor_cache_gb": 0,
        }

    @property
    def sampling_args(self) -> dict[str, Any]:
        """The text id is sampled; the codes are the next best."""
        return {"logprobs": self._ids.num_leading}

    def open_session(self, session_id: int) -> MoshiCall:
        """A new call: its codec state, its streams."""
        # Unlike session ids, call numbers never come twice in the life of an engine.
        name = f"call-{next(self._call_numbers)}"
        return MoshiCall(name, self.codec.open_call(), self._ids)


class MoshiCall:
    """One call; `spoken` is what the model has said so far."""

    def __init__(self, name: str, encoder: MimiEncoder, ids: AnswerIds) -> None:
        self.spoken: list[SpokenFrame] = []
        self._name = name
        self._encoder = encoder
        self._ids = ids
        self._streams = TokenStreams(
            num_codebooks=ids.num_codebooks,
            text_initial_id=ids.text_vocab_size,
            code_initial_id=ids.codebook_size,
        )
        self._is_answered = asyncio.Event()
        self._is_answered.set()

    async def prompt(self, index: int, audio: npt.NDArray[np.float32]) -> Any:
        """The frame's 17 ids behind one placeholder, once the frame before has been answered."""
        user_codes = self._encoder.encode(audio)
        await self._is_answered.wait()
        self._is_answered.clear()
        return frame_input(self._streams.next_input(user_codes), f"{self._name}-{index}")

    def recycled_prompt(
        self, kept: Sequence[Answered], index: int, audio: npt.NDArray[np.float32]
    ) -> Any:
        """Refused before a run (`check_recycles`): a call's streams would have to be taken over."""
        raise ConfigError("model=moshi is not served with retention=recycle: choose sink_window")

    def receive(self, completion: Any) -> None:
        """Take the nine ids of an answer. Raises: EngineError if there are not nine."""
        text, codes = self._ids.unpack(completion.logprobs[-1])
        frame = self._streams.answered(text, codes)
        if frame is not None:
            self.spoken.append(frame)
        self._is_answered.set()
