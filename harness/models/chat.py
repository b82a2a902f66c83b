"""The chat layout of a conversation, and the chunks that its turns extend a session by.

    header     <|im_start|>system ... <|im_end|>        once, at the start of a session
    question   <|im_start|>user ... <|im_end|>          in words, or as one audio item
    opening    <|im_start|>assistant                    then the model speaks

Source: ChatML, in the published chat templates of SmolLM2 and Qwen3-Omni; after a spoken question
stands an instruction, as in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.core.errors import ConfigError
from harness.models.catalog import ModelSpec
from harness.models.front_ends.audio_item import AudioItemFrontEnd

# Families that hold conversations -> what their header says.
_SYSTEMS = {
    "text": "You are a helpful AI assistant named SmolLM, trained by Hugging Face",
    "qwen3_omni": "You are a helpful assistant.",
}
_INSTRUCTION = "Answer the question spoken in the audio in a few words."
_ENDS = ("<|im_end|>", "<|endoftext|>")


@dataclass(frozen=True, slots=True)
class TurnChunk:
    """What a turn extends its session by.

    prompt: as vLLM's StreamingInput takes it. num_tokens: that it becomes.
    """

    prompt: dict[str, Any]
    num_tokens: int


def check_converses(model: ModelSpec) -> None:
    """Refuse a model whose chat layout is not known. Raises: ConfigError."""
    if model.family not in _SYSTEMS:
        raise ConfigError(
            f"model={model.name} holds no conversations here: its chat layout is not in "
            "harness/models/chat.py: choose model=smollm2 or model=qwen3_omni"
        )


class Chat:
    """The tokenizer of a checkpoint, and the layout of its model."""

    def __init__(self, model: ModelSpec, checkpoint: str | Path) -> None:
        from transformers import AutoTokenizer

        check_converses(model)
        self._system = _SYSTEMS[str(model.family)]
        self._tokenizer: Any = AutoTokenizer.from_pretrained(str(checkpoint))
        self.end_ids = frozenset(map(int, self._tokenizer.convert_tokens_to_ids(list(_ENDS))))

    def written(self, questions: Sequence[str]) -> list[TurnChunk]:
        """One chunk a question; the first carries the header, the others close the last answer."""
        chunks = (self._ids(text) for text in self._laid_out(questions))
        return [TurnChunk({"prompt_token_ids": ids}, len(ids)) for ids in chunks]

    def spoken(
        self, questions: Sequence[npt.NDArray[np.float32]], front_end: AudioItemFrontEnd
    ) -> list[TurnChunk]:
        """The same with questions to be heard, each (num_samples,) at the model's sample rate."""
        texts = self._laid_out([front_end.frame_text + _INSTRUCTION] * len(questions))
        chunks = []
        for text, audio in zip(texts, questions, strict=True):
            written = len(self._ids(text.replace(front_end.frame_text, "")))
            prompt = front_end.prompt(0, audio) | {"prompt": text}
            chunks.append(TurnChunk(prompt, written + front_end.heard_tokens(audio.size)))
        return chunks

    def text(self, token_ids: Sequence[int]) -> str:
        """What was said, without the layout's own tokens."""
        return str(self._tokenizer.decode(token_ids, skip_special_tokens=True))

    def _laid_out(self, questions: Sequence[str]) -> list[str]:
        header = f"<|im_start|>system\n{self._system}<|im_end|>\n"
        openings = [header] + ["<|im_end|>\n"] * (len(questions) - 1)
        return [
            f"{opening}<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
            for opening, question in zip(openings, questions, strict=True)
        ]

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False).input_ids)
