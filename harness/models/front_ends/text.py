"""A probe: a text model that is fed tokens of a text in place of each frame's audio.

Nothing is transcribed: what a session says is a passage of the probe's own texts, at the catalog's
rate, whatever its audio. Session i starts `i // num_texts` frames-long strides into passage
`i mod num_texts`, so that no two sessions share a prefix, and goes around when the passage ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.models.catalog import ModelSpec
from harness.models.front_ends.base import Answered
from harness.models.probe import read_texts

# Tokens between the beginnings of two sessions with the same passage.
_STRIDE_TOKENS = 509


class TextFrontEnd:
    """The texts of a probe's checkpoint, shared by all sessions."""

    def __init__(self, model: ModelSpec, checkpoint: Path) -> None:
        self._tokens_per_frame = model.prompt_tokens_per_frame
        self._texts = list(read_texts(checkpoint).values())

    @property
    def engine_args(self) -> dict[str, Any]:
        """Ids go in and ids come out."""
        return {"skip_tokenizer_init": True}

    @property
    def sampling_args(self) -> dict[str, Any]:
        """Nothing beyond the length."""
        return {}

    def open_session(self, session_id: int) -> SpokenText:
        """A session's passage, from its own beginning."""
        round_number, place = divmod(session_id, len(self._texts))
        text = np.roll(self._texts[place], -(round_number * _STRIDE_TOKENS))
        return SpokenText(text, self._tokens_per_frame)


class SpokenText:
    """What one session says."""

    def __init__(self, token_ids: npt.NDArray[np.int64], tokens_per_frame: int) -> None:
        self._token_ids = token_ids
        self._tokens_per_frame = tokens_per_frame

    def prompt(self, index: int, audio: npt.NDArray[np.float32]) -> Any:
        """The next tokens of the text; `audio` is not listened to."""
        places = np.arange(index * self._tokens_per_frame, (index + 1) * self._tokens_per_frame)
        ids = np.take(self._token_ids, places, mode="wrap")
        return {"prompt_token_ids": ids.tolist()}

    def recycled_prompt(
        self, kept: Sequence[Answered], index: int, audio: npt.NDArray[np.float32]
    ) -> Any:
        """Kept tokens of the text, each frame's with what was said to it, then the next ones."""
        ids: list[int] = []
        for frame in kept:
            ids += [*self.prompt(frame.index, frame.audio)["prompt_token_ids"], *frame.said]
        return {"prompt_token_ids": ids + self.prompt(index, audio)["prompt_token_ids"]}

    def receive(self, completion: Any) -> None:
        """Text tokens: nothing to keep."""
