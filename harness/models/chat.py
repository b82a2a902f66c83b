"""The chat layout of a probe's checkpoint: what surrounds a question, as token ids.

    header     <|im_start|>system ... <|im_end|>        once, at the start of a session
    question   <|im_start|>user ... <|im_end|>
    opening    <|im_start|>assistant                    then the model speaks

Source: the checkpoint's own chat template (ChatML).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


class Chat:
    """The tokenizer of a checkpoint, and its layout."""

    def __init__(self, checkpoint: Path) -> None:
        from transformers import AutoTokenizer

        self._tokenizer: Any = AutoTokenizer.from_pretrained(str(checkpoint))
        self.end_id: int = int(self._tokenizer.eos_token_id)

    def turns(self, questions: list[str]) -> list[list[int]]:
        """One chunk a question; the first carries the header, the others close the last answer."""
        header = f"<|im_start|>system\n{_SYSTEM}<|im_end|>\n"
        openings = [header] + ["<|im_end|>\n"] * (len(questions) - 1)
        texts = (
            f"{opening}<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
            for opening, text in zip(openings, questions, strict=True)
        )
        return [list(self._tokenizer(text).input_ids) for text in texts]

    def text(self, token_ids: list[int]) -> str:
        """What was said, without the layout's own tokens."""
        return str(self._tokenizer.decode(token_ids, skip_special_tokens=True))
