"""Moshi's 17 token streams: text, the model's own 8 codebooks, the user's 8.

Streams are delayed against one another, so that a step decides the coarse code of a frame before
the fine ones: text and each speaker's first codebook by 0 frames, the other seven by 1. A stream
that has nothing to say yet reads its initial id.

Example, a = own codes, u = user codes, I = initial id; `n` is the step that said or heard a code:

    step          0    1     2        what it says
    text          I    t.0   t.1      t.n at step n
    own 1st       I    a.0   a.1      a.n at step n
    own others    I    I     a.1      a.n at step n, one frame later than the first: they belong to
                                      the first of step n - 1
    user 1st      I    u.1   u.2
    user others   I    I     u.1

So the user's first frame is never heard, and a frame of speech is whole one step late: after step
n it consists of the first code of step n - 1 and the others of step n.
Source: Moshi (arXiv 2410.00037), 3.4.4; initial ids and alignment as Kyutai's `moshi` 0.2.13 does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ACOUSTIC_DELAY = 1


@dataclass(frozen=True, slots=True)
class SpokenFrame:
    """One frame of the model's speech: a text id and a code of each codebook, aligned in time."""

    text: int
    codes: tuple[int, ...]


class TokenStreams:
    """The streams of one call, one step at a time: `next_input`, then `answered`, and again.

    text_initial_id, code_initial_id: read before a stream begins.
    """

    def __init__(self, *, num_codebooks: int, text_initial_id: int, code_initial_id: int) -> None:
        speaker = [0] + [ACOUSTIC_DELAY] * (num_codebooks - 1)
        self._delays = np.array([0, *speaker, *speaker])
        self._initial = np.array([text_initial_id] + [code_initial_id] * (2 * num_codebooks))
        self._num_own = 1 + num_codebooks
        # Row p % depth holds what step p reads; a user's code lies at most one step ahead.
        self._depth = ACOUSTIC_DELAY + 2
        self._placed = np.tile(self._initial, (self._depth, 1))
        self._step = 0

    def next_input(self, user_codes: Sequence[int]) -> list[int]:
        """What this step reads: text, own codes, user codes.

        user_codes: of the frame that the user has just finished, one a codebook.
        """
        for offset, code in enumerate(user_codes):
            stream = self._num_own + offset
            self._placed[(self._step + self._delays[stream]) % self._depth, stream] = code
        started = self._step > self._delays
        row: list[int] = np.where(
            started, self._placed[self._step % self._depth], self._initial
        ).tolist()
        return row

    def answered(self, text: int, codes: Sequence[int]) -> SpokenFrame | None:
        """Take what this step said; returns the frame of speech that is now whole.

        None after the first step.
        """
        self._step += 1
        self._placed[self._step % self._depth, : self._num_own] = [text, *codes]
        if self._step <= ACOUSTIC_DELAY:
            return None
        own = np.arange(self._num_own)
        rows = (self._step - ACOUSTIC_DELAY + self._delays[own]) % self._depth
        text_id, *aligned = self._placed[rows, own].tolist()
        return SpokenFrame(text=text_id, codes=tuple(aligned))
