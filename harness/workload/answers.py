"""How long the model talks: output tokens of every frame, drawn up front.

A run has one *verbosity* V = exp(spread z), z standard normal: some content makes a model talk
more, and all sessions of a run share the prompt that decides it. Within a run lengths
are geometric with mean m V, at least 1 and at most the limit.
Source: our reading of the paper's growth of 27 to 31 tokens a second at one workload (4.3 % either
way); 14 of 20 walls need a spread between runs, independent lengths average out over minutes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.config import AnswerKind, RunConfig
from harness.core.seeding import named_rng


def draw_answers(run: RunConfig) -> npt.NDArray[np.int64]:
    """Output tokens of every frame, (num_sessions, num_frames)."""
    shape = (run.workload.num_sessions, run.num_frames)
    if run.workload.answers is AnswerKind.fixed:
        return np.full(shape, run.model.output_tokens_per_frame, dtype=np.int64)
    rng = named_rng(run.seed, "answers")
    verbosity = float(np.exp(run.workload.answer_spread * rng.standard_normal()))
    lengths = rng.geometric(_end_probability(run, verbosity), size=shape)
    return np.minimum(lengths, run.longest_answer_tokens).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class AnswerMoments:
    """Mean and standard deviation of one answer's length, in tokens."""

    mean: float
    deviation: float


def answer_moments(run: RunConfig, verbosity: float = 1.0) -> AnswerMoments:
    """The distribution that `draw_answers` draws from, in a run of the given verbosity.

    A length that is cut at the limit is shorter on average: E min(G, L) = sum of P(G > k), k < L.
    Example: geometric with mean 32, cut at 64 -> 27.8.
    """
    if run.workload.answers is AnswerKind.fixed:
        return AnswerMoments(mean=run.model.output_tokens_per_frame, deviation=0.0)
    shorter = np.arange(run.longest_answer_tokens)
    exceeds = (1.0 - _end_probability(run, verbosity)) ** shorter
    mean = float(exceeds.sum())
    square = float(((2 * shorter + 1) * exceeds).sum())
    return AnswerMoments(mean=mean, deviation=float(np.sqrt(max(0.0, square - mean**2))))


def _end_probability(run: RunConfig, verbosity: float) -> float:
    """Chance that a geometric answer ends with any given token; its mean is never below 1."""
    return 1.0 / max(1.0, run.model.output_tokens_per_frame * verbosity)
