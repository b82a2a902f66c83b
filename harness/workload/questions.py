"""Short questions for a small model, each with words that a right answer holds.

Chosen once because SmolLM2-135M answers them at the start of a session, unbounded and greedily; how
many it answers later is what is measured. A session asks them in turn, from a place of its own, and
at its end what its first question was.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """keywords: an answer is right if it holds one of them, whatever the case.

    topic: words by which the question itself is recalled.
    """

    question_id: str
    text: str
    keywords: tuple[str, ...]
    topic: tuple[str, ...]

    def is_answered_by(self, text: str) -> bool:
        """Whether a keyword is in `text`. Example: `paris` is in `It is Paris.`."""
        return any(keyword in text.lower() for keyword in self.keywords)


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


_RECALL = "recall:"


def recall_of(first: Question) -> Question:
    """Ask what was asked first; right if the answer names what that was about."""
    return Question(
        _RECALL + first.question_id,
        "What was the very first question I asked you?",
        first.topic,
        first.topic,
    )


def is_recall(question_id: str) -> bool:
    """Whether a question asks for an earlier one."""
    return question_id.startswith(_RECALL)


def asked(session_id: int, num_turns: int) -> list[Question]:
    """What a session is asked, in order; sessions begin at different questions.

    The last of several turns asks for the first.
    """
    turns = [QUESTIONS[(3 * session_id + turn) % len(QUESTIONS)] for turn in range(num_turns)]
    return [*turns[:-1], recall_of(turns[0])] if num_turns > 1 else turns


def question(question_id: str) -> Question:
    """The question of a name."""
    named = question_id.removeprefix(_RECALL)
    found = next(each for each in QUESTIONS if each.question_id == named)
    return recall_of(found) if is_recall(question_id) else found
