"""A step's nine answers through vLLM's one: text id and codes as the top of the logits.

vLLM samples one token a step and can report the most likely others (`logprobs`). Moshi decides a
text id and then eight codes, so the model hands vLLM logits in which these nine lead in order: the
text id, which greedy sampling takes, then the codes, each in its codebook's own block of ids.

    ids    0 .. text_vocab_size - 1    text
           then codebook_size for each codebook
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from harness.core.errors import EngineError

_TEXT_LOGIT = 100.0
_FIRST_CODE_LOGIT = 50.0
_OTHER_LOGIT = -100.0


@dataclass(frozen=True, kw_only=True)
class AnswerIds:
    """The blocks of ids that text and codes live in."""

    text_vocab_size: int
    codebook_size: int
    num_codebooks: int

    @property
    def num_leading(self) -> int:
        """Ids that lead the logits: what `SamplingParams.logprobs` must ask for."""
        return 1 + self.num_codebooks

    def pack(self, text: Tensor, codes: Tensor) -> Tensor:
        """Logits (n, vocab) led by text (n,) and codes (n, num_codebooks)."""
        num_rows = len(text)
        vocab_size = self.text_vocab_size + self.num_codebooks * self.codebook_size
        rank = torch.arange(self.num_codebooks, device=text.device)
        logits = torch.full((num_rows, vocab_size), _OTHER_LOGIT, device=text.device)
        logits.scatter_(1, text[:, None], _TEXT_LOGIT)
        ids = self.text_vocab_size + rank * self.codebook_size + codes
        return logits.scatter_(1, ids, (_FIRST_CODE_LOGIT - rank.float()).expand(num_rows, -1))

    def unpack(self, ids: Iterable[int]) -> tuple[int, tuple[int, ...]]:
        """Text id and codes among the leading ids, in any order.

        Raises: EngineError if one is missing or doubled.
        """
        ids = sorted(ids)
        text, *rest = ids
        codes = [
            identifier - self.text_vocab_size - codebook * self.codebook_size
            for codebook, identifier in enumerate(rest)
        ]
        whole = len(rest) == self.num_codebooks and 0 <= text < self.text_vocab_size
        if not whole or not all(0 <= code < self.codebook_size for code in codes):
            raise EngineError(
                f"vLLM answered with the ids {ids}, not one text id and {self.num_codebooks} codes:"
                f" SamplingParams need temperature=0 and logprobs={self.num_leading}"
            )
        return text, tuple(codes)
