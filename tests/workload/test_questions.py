"""What is asked of whom, and what counts as right."""

import pytest

from harness.workload.questions import (
    PROBE_QUESTIONS,
    QUESTIONS,
    Question,
    QuestionSet,
    clip_of,
    is_recall,
    is_right,
    spoken_texts,
)


def test_no_two_of_thirty_two_sessions_hold_the_same_conversation() -> None:
    orders = {tuple(q.question_id for q in PROBE_QUESTIONS.asked(n, 10)[:-1]) for n in range(32)}
    assert len(orders) == 32
    firsts = [PROBE_QUESTIONS.asked(n, 1)[0] for n in range(10)]
    assert set(firsts) == set(QUESTIONS)


def test_a_session_asks_everything_once_before_anything_twice() -> None:
    for session in (0, 11, 25, 39):
        asked = PROBE_QUESTIONS.asked(session, 12)[:-1]
        assert len({q.question_id for q in asked[:10]}) == 10
        assert asked[10] == asked[0]


def test_the_last_turn_asks_for_the_first_if_the_set_can() -> None:
    first, *_, last = PROBE_QUESTIONS.asked(3, 4)
    assert first.question_id == "romeo"
    assert is_recall(last.question_id)
    assert is_right("You asked who wrote ROMEO and Juliet.", last.keywords)
    assert not is_right("It is Shakespeare.", last.keywords)
    assert clip_of(last) == "recall"
    assert clip_of(first) == "romeo"
    trivia = QuestionSet((Question("a", "?", ("x",)), Question("b", "?", ("y",))), False)
    assert [q.question_id for q in trivia.asked(0, 4)] == ["a", "b", "a", "b"]


@pytest.mark.parametrize(
    ("answer", "keywords", "right"),
    [
        ("It is PARIS.", ("paris",), True),
        ("It is Rome.", ("paris",), False),
        ("In the U.S.", ("the US", "U S"), True),
        ("Jean-Paul Sartre wrote it", ("Jean Paul Sartre",), True),
        ("A cat", ("the cat",), True),
        ("anything", ("the",), False),
        ("", ("paris",), False),
    ],
)
def test_an_answer_is_right_if_it_includes_a_keyword(
    answer: str, keywords: tuple[str, ...], right: bool
) -> None:
    assert is_right(answer, keywords) is right


def test_there_is_one_text_to_speak_for_each_question_and_one_for_recall() -> None:
    texts = spoken_texts()
    assert set(texts) == {q.question_id for q in QUESTIONS} | {"recall"}
    assert texts["week"] == "How many days are in a week?"
