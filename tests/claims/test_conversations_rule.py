"""Conversations made up here: what the tables and the rules make of them."""

import pandas as pd
import pytest

from harness.analysis.conversations import answered_shares, equivalence, judged_turns
from harness.claims.conversations import free_running, turns
from harness.claims.judgement import ClaimVerdict
from harness.workload.questions import PROBE_QUESTIONS

WINDOW, BLOCK, TURNS, SESSIONS = 128, 32, 10, 6


def answers(right) -> pd.DataFrame:
    """Turns 40 tokens apart; `right(session, turn)` says whether one is answered."""
    rows = []
    for session in range(SESSIONS):
        for turn, each in enumerate(PROBE_QUESTIONS.asked(session, TURNS)):
            is_right = right(session, turn)
            rows.append(
                {
                    "session_id": session,
                    "turn": turn,
                    "question_id": each.question_id,
                    "keywords": list(each.keywords),
                    "position": 40 * (turn + 1),
                    "token_ids": [turn, 1, 2, 3, 4, session] if is_right else [5] * 8,
                    "text": f"It is {each.keywords[0].upper()}." if is_right else "no idea",
                    "entropy_nats": 0.5,
                    "ended": True,
                }
            )
    return pd.DataFrame(rows)


def tables(**rights) -> dict[str, pd.DataFrame]:
    """rights: `unbounded` or `s<S>` -> which turns are right."""
    runs = []
    for name, right in rights.items():
        window = None if name == "unbounded" else WINDOW
        sinks = 0 if window is None else int(name[1:])
        kept = {"window_tokens": window, "sink_tokens": sinks}
        runs.append(({"retention": kept, "evidence": "live-smollm2"}, answers(right)))
    judged = judged_turns(runs)
    return {
        "shares": answered_shares(judged, BLOCK),
        "equivalence": equivalence(judged, BLOCK, 0.1),
        "turns": judged,
    }


def always(_session: int, _turn: int) -> bool:
    return True


def early(_session: int, turn: int) -> bool:
    return turn < 3


def half(session: int, turn: int) -> bool:
    return (session + turn) % 2 == 0


def test_sinks_that_are_load_bearing_reproduce_c7_and_a_deep_pin_must_fail() -> None:
    found = free_running(tables(unbounded=always, s0=early, s32=always, s64=early))
    assert found.verdict is ClaimVerdict.REPRODUCED
    found = free_running(tables(unbounded=always, s0=early, s32=always, s64=always))
    assert found.verdict is ClaimVerdict.PARTLY
    assert "reaches into generated tokens" in found.why


@pytest.mark.parametrize(
    ("s0", "s32", "why"),
    [(half, always, "without sinks late answers fall"), (early, half, "one block of sinks")],
)
def test_each_part_of_c7_can_fail(s0, s32, why) -> None:
    found = free_running(tables(unbounded=always, s0=s0, s32=s32))
    assert found.verdict is ClaimVerdict.PARTLY
    assert why in found.why


def test_a_model_that_cannot_answer_unbounded_decides_nothing() -> None:
    for rule in (free_running, turns):
        found = rule(tables(unbounded=early, s0=early, s32=early))
        assert found.verdict is ClaimVerdict.NOT_MEASURED


def test_c6_is_judged_on_late_turns_by_session() -> None:
    assert turns(tables(unbounded=half, s0=half)).verdict is ClaimVerdict.REPRODUCED
    lost = turns(tables(unbounded=always, s0=early, s32=always))
    assert lost.verdict is ClaimVerdict.PARTLY
    assert "a window answers as unbounded" in lost.why
    assert "W=128, S=0: 0%, 0/6 sessions" in lost.ours


def test_equivalence_needs_the_interval_within_the_margin() -> None:
    # One session in six is 4 of 7 late turns off: a mean of 0.095 with a wide interval.
    def nearly(session: int, turn: int) -> bool:
        return session != 0 or turn % 2 == 0 or turn < 3

    row = tables(unbounded=always, s0=nearly)["equivalence"].iloc[0]
    assert abs(row["difference"]) < 0.1
    assert row["low"] < -0.1
    assert row["p_value"] > 0.05


def test_unbounded_is_judged_on_the_late_turns_of_each_window() -> None:
    shares = tables(unbounded=half, s0=early)["shares"]
    assert shares["late_turns"].tolist() == [36, 36]
    assert shares["early_answered"].tolist() == [0.5, 1.0]
    assert shares["late_repeated"].tolist()[1] > 0.9


def test_a_deep_pin_is_one_that_reaches_beyond_the_first_question() -> None:
    shares = tables(unbounded=always, s32=always, s64=always)["shares"]
    assert shares["pins_said"].tolist() == [False, False, True]
    # Two blocks that end within the first question are no boundary control.
    long_question = answers(always).assign(position=lambda table: table["position"] + 30)
    kept = {"window_tokens": WINDOW, "sink_tokens": 64}
    judged = judged_turns([({"retention": kept, "evidence": "live-full"}, long_question)])
    assert not answered_shares(judged, BLOCK)["pins_said"].any()


def test_the_question_that_asks_for_the_first_is_counted_apart() -> None:
    only_recall = tables(unbounded=lambda _session, turn: turn == TURNS - 1, s0=early)
    found = only_recall["shares"].set_index("is_bounded")
    assert found.loc[False, ["late_answered", "recalled"]].tolist() == [0.0, 1.0]
    assert found.loc[True, "recalled"] == 0.0
    assert found.loc[False, "recall_turns"] == SESSIONS
