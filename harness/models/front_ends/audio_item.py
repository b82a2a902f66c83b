"""What the omni models' front ends share: every frame is one audio item.

vLLM's own processor turns it into features and placeholder tokens.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from harness.core.errors import ConfigError
from harness.models.catalog import ModelSpec
from harness.models.front_ends.base import Answered

# Whisper's feature extractor: one log-mel frame every 160 samples at 16 kHz.
HOP_SAMPLES = 160
# A plain character in every tokenizer of the catalogue.
_PLAIN_ID = 0


class AudioItemFrontEnd(ABC):
    """Stateless: all calls share one front end.

    frame_text: the chunk of one frame, with the model's audio placeholder in it.

    Raises: ConfigError if a frame does not become the tokens that the catalogue says.
    """

    frame_text: ClassVar[str]

    def __init__(self, model: ModelSpec, checkpoint: Path) -> None:
        self._sample_rate_hz = model.sample_rate_hz
        self._frame_samples = model.frame_samples
        self._checkpoint = checkpoint
        found = self.heard_tokens(self._frame_samples)
        catalogued = model.prompt_tokens_per_frame - model.other_tokens_per_frame
        if found != catalogued:
            fitting = (found - model.wrapper_tokens_per_frame) / model.frame_budget_s
            raise ConfigError(
                f"model.frame_budget_s={model.frame_budget_s:g} makes {found} prompt tokens of a "
                f"frame, not the {catalogued} that model.audio_tokens_per_s="
                f"{model.audio_tokens_per_s:g} says: set model.audio_tokens_per_s={fitting:g}"
            )

    def heard_tokens(self, num_samples: int) -> int:
        """Tokens that one audio item of this length becomes, with those around it."""
        return self.prompt_tokens(math.ceil(num_samples / HOP_SAMPLES))

    @staticmethod
    @abstractmethod
    def prompt_tokens(num_mel_frames: int) -> int:
        """Tokens that vLLM makes of one frame's text and audio."""

    @property
    def engine_args(self) -> dict[str, Any]:
        """Audio only: towers of other modalities are neither loaded nor profiled.

        No frame is ever heard twice, so none is kept for a second time.
        """
        return {
            "limit_mm_per_prompt": {"audio": 1, "image": 0, "video": 0},
            "mm_processor_cache_gb": 0,
        }

    @property
    def sampling_args(self) -> dict[str, Any]:
        """Nothing beyond the length."""
        return {}

    def open_session(self, session_id: int) -> AudioItemFrontEnd:
        """All calls share the front end."""
        return self

    def prompt(self, index: int, audio: npt.NDArray[np.float32]) -> Any:
        """The frame's text and its one audio item."""
        return {
            "prompt": self.frame_text,
            "multi_modal_data": {"audio": [(audio, self._sample_rate_hz)]},
        }

    def recycled_prompt(
        self, kept: Sequence[Answered], index: int, audio: npt.NDArray[np.float32]
    ) -> Any:
        """Token ids, since what was said came as ids; each frame's audio is one item, as ever.

        A said id that is part of a frame's own text (tiny random weights may say one) goes in as
        another id: the processor would look for audio there.
        """
        ids: list[int] = []
        for frame in kept:
            ids += [*self._frame_ids, *(self._plain_id(token) for token in frame.said)]
        audios = [frame.audio for frame in kept] + [audio]
        return {
            "prompt_token_ids": [*ids, *self._frame_ids],
            "multi_modal_data": {"audio": [(each, self._sample_rate_hz) for each in audios]},
        }

    @functools.cached_property
    def _tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        trusts = bool(self.engine_args.get("trust_remote_code", False))
        return AutoTokenizer.from_pretrained(str(self._checkpoint), trust_remote_code=trusts)

    @functools.cached_property
    def _frame_ids(self) -> list[int]:
        ids: list[int] = self._tokenizer.encode(self.frame_text, add_special_tokens=False)
        return ids

    def _plain_id(self, token_id: int) -> int:
        return _PLAIN_ID if token_id in self._frame_ids else token_id

    def receive(self, completion: Any) -> None:  # noqa: B027 - a default, not a hole
        """Text tokens: nothing to keep."""
