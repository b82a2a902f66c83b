"""How long the model talks: output tokens of every frame, drawn up front.

A run has one *verbosity* V = exp(spread z), z standard normal: some content makes a model talk
more, and all sessions of a run share the prompt that decides it. Within a run lengths
are geometric with mean m V, at least 1 and at most the limit.
Source: our reading of the paper's growth of 27 to 31 tokens a second at one workload (4.3 % either
way); 14 of 20 walls need a spread between runs, independent lengths average out over minutes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.config import AnswerKind, RunConfig
from harness.core.seeding import named_rng


def draw_answers(run: RunConfig) -> npt.NDArray[np.int64]:
    """Output tokens of every frame, (num_sessions, num_frames)."""
    shape = (run.workload.num_sessions, run.num_frames)
    mean = run.model.output_tokens_per_frame
    if run.workload.answers is AnswerKind.fixed:
        return np.full(shape, mean, dtype=np.int64)
    rng = named_rng(run.seed, "answers")
    verbosity = float(np.exp(run.workload.answer_spread * rng.standard_normal()))
    # A geometric length has no mean below 1.
    lengths = rng.geometric(1.0 / max(1.0, mean * verbosity), size=shape)
    return np.minimum(lengths, run.longest_answer_tokens).astype(np.int64)
