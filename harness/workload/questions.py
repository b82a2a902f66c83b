"""Questions with words that a right answer holds: the probe's own ten, and question sets.

The ten were chosen once because SmolLM2-135M answers them at the start of a session, unbounded and
greedily; how many it answers later is what is measured. A session asks the questions of its set in
turn, in an order of its own, and at its end what its first question was.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

# The clip of a spoken set that asks what the first question was.
RECALL_CLIP = "recall"
_NOT_A_WORD = re.compile(r"[\W_]+")
_ARTICLES = frozenset({"a", "an", "the"})


@dataclass(frozen=True, slots=True)
class Question:
    """keywords: an answer is right if it holds one of them, whatever the case.

    topic: words by which the question itself is recalled; none: it cannot be asked for.
    """

    question_id: str
    text: str
    keywords: tuple[str, ...]
    topic: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions, and whether the last turn of a session asks for its first."""

    questions: tuple[Question, ...]
    has_recall: bool

    def asked(self, session_id: int, num_turns: int) -> list[Question]:
        """What a session is asked, in order.

        Sessions begin at different questions; once every question has been the first, they go
        through the list in other steps, so that no two sessions hold the same conversation.
        Example: ten questions -> 40 different orders.
        """
        size = len(self.questions)
        steps = [step for step in range(1, size + 1) if math.gcd(step, size) == 1]
        step = steps[session_id // size % len(steps)]
        turns = [self.questions[(session_id + step * turn) % size] for turn in range(num_turns)]
        if num_turns < 2 or not self.has_recall:
            return turns
        return [*turns[:-1], recall_of(turns[0])]


QUESTIONS = (
    Question("france", "What is the capital of France?", ("paris",), ("france",)),
    Question("week", "How many days are in a week?", ("7", "seven"), ("week",)),
    Question("ocean", "What is the largest ocean on Earth?", ("pacific",), ("ocean",)),
    Question("romeo", "Who wrote Romeo and Juliet?", ("shakespeare",), ("romeo", "juliet")),
    Question("japan", "What is the capital of Japan?", ("tokyo",), ("japan",)),
    Question("breathe", "What gas do humans need to breathe?", ("oxygen",), ("gas", "breathe")),
    Question("hot", "What is the opposite of hot?", ("cold",), ("opposite", "hot")),
    Question(
        "star", "What star is at the center of our solar system?", ("sun",), ("star", "solar")
    ),
    Question("italy", "What is the capital of Italy?", ("rome",), ("italy",)),
    Question("brazil", "Which language is spoken in Brazil?", ("portuguese",), ("brazil",)),
)
PROBE_QUESTIONS = QuestionSet(QUESTIONS, has_recall=True)


def recall_of(first: Question) -> Question:
    """Ask what was asked first; right if the answer names what that was about."""
    return Question(
        f"{RECALL_CLIP}:{first.question_id}",
        "What was the very first question I asked you?",
        first.topic,
        first.topic,
    )


def is_recall(question_id: str) -> bool:
    """Whether a question asks for an earlier one."""
    return question_id.startswith(f"{RECALL_CLIP}:")


def clip_of(question: Question) -> str:
    """The clip of a spoken set that asks it: one and the same for every earlier question."""
    return RECALL_CLIP if is_recall(question.question_id) else question.question_id


def spoken_texts() -> dict[str, str]:
    """What to speak for the probe's own questions, by clip."""
    return {clip_of(each): each.text for each in (*QUESTIONS, recall_of(QUESTIONS[0]))}


def is_right(answer: str, keywords: Sequence[str]) -> bool:
    """Whether one of the keywords stands in the answer; case, marks and articles do not count.

    Inclusion, as the paper scores spoken answers. Example: `paris` is in `It is Paris.`.
    """
    said = _plain_words(answer)
    return any((wanted := _plain_words(word)) and wanted in said for word in keywords)


def _plain_words(text: str) -> str:
    return " ".join(w for w in _NOT_A_WORD.sub(" ", text.lower()).split() if w not in _ARTICLES)
