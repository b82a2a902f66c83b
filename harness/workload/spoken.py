"""Spoken questions: a fetched corpus whose clips ask something, and what is right.

Clips of a question set carry their question and answers; clips named after the probe's own
questions are those, spoken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.core.errors import CorpusError
from harness.workload.audio import Samples
from harness.workload.cache import CachedClip, CorpusCache
from harness.workload.corpus import load_corpus
from harness.workload.questions import QUESTIONS, RECALL_CLIP, Question, QuestionSet, clip_of


@dataclass(frozen=True, kw_only=True)
class SpokenQuestions:
    """What is asked, and how it sounds.

    audio: by clip, (num_samples,) float32 at the model's sample rate.
    """

    asked: QuestionSet
    audio: dict[str, Samples]

    def audio_of(self, question: Question) -> Samples:
        """The recording that asks a question."""
        return self.audio[clip_of(question)]


def load_spoken_questions(
    names: Sequence[str], *, cache_dir: Path, sample_rate_hz: int
) -> SpokenQuestions:
    """The questions of the named corpora, in the order of their clips' ids.

    Raises: CorpusError if a corpus is not in the cache, a clip of it asks nothing, or
        two of them share a name.
    """
    clips = load_corpus(names, cache_dir=cache_dir, sample_rate_hz=sample_rate_hz)
    cache = CorpusCache(cache_dir)
    stored = {(name, clip.clip_id): clip for name in names for clip in cache.clips_of(name) or ()}
    questions = tuple(
        _question(stored[clip.corpus, clip.clip_id])
        for clip in clips
        if clip.clip_id != RECALL_CLIP
    )
    audio = {clip.clip_id: clip.samples for clip in clips}
    if len(audio) < len(clips):
        raise CorpusError(
            f"workload.corpora=[{', '.join(names)}] have clips of one name: ask from one at a time"
        )
    has_recall = RECALL_CLIP in audio and all(each.topic for each in questions)
    return SpokenQuestions(asked=QuestionSet(questions, has_recall), audio=audio)


def _question(clip: CachedClip) -> Question:
    if clip.question is not None:
        return Question(clip.clip_id, clip.question, clip.answers)
    known = {each.question_id: each for each in QUESTIONS}
    if clip.clip_id not in known:
        raise CorpusError(
            f"clip {clip.corpus}/{clip.clip_id}: asks nothing that is known: name a set of spoken "
            "questions in workload.corpora, such as [spoken_questions] or [llama_questions]"
        )
    return known[clip.clip_id]
