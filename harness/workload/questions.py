"""Short questions for a small model, each with words that a right answer holds.

Chosen once because SmolLM2-135M answers them at the start of a session, unbounded and greedily; how
many it answers later is what is measured. A session asks them in turn, from a place of its own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """keywords: an answer is right if it holds one of them, whatever the case."""

    question_id: str
    text: str
    keywords: tuple[str, ...]

    def is_answered_by(self, text: str) -> bool:
        """Whether a keyword is in `text`. Example: `paris` is in `It is Paris.`."""
        return any(keyword in text.lower() for keyword in self.keywords)


QUESTIONS = (
    Question("france", "What is the capital of France?", ("paris",)),
    Question("week", "How many days are in a week?", ("7", "seven")),
    Question("ocean", "What is the largest ocean on Earth?", ("pacific",)),
    Question("romeo", "Who wrote Romeo and Juliet?", ("shakespeare",)),
    Question("japan", "What is the capital of Japan?", ("tokyo",)),
    Question("breathe", "What gas do humans need to breathe?", ("oxygen",)),
    Question("hot", "What is the opposite of hot?", ("cold",)),
    Question("star", "What star is at the center of our solar system?", ("sun",)),
    Question("italy", "What is the capital of Italy?", ("rome",)),
    Question("brazil", "Which language is spoken in Brazil?", ("portuguese",)),
)


def asked(session_id: int, num_turns: int) -> list[Question]:
    """What a session is asked, in order; sessions begin at different questions."""
    return [QUESTIONS[(3 * session_id + turn) % len(QUESTIONS)] for turn in range(num_turns)]


def question(question_id: str) -> Question:
    """The question of a name."""
    return next(each for each in QUESTIONS if each.question_id == question_id)
