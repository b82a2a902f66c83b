"""What was answered, and whether speech stays healthy, from the words of conversations.

A turn is *late* once the session is older than its window and a block: something is forgotten.
Unbounded is judged on the same turns as each window: those later than that window.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from harness.analysis.proportions import Proportion
from harness.analysis.runs import variant
from harness.workload.questions import is_recall, is_right

_NGRAM = 4

Conversed = tuple[dict[str, Any], pd.DataFrame]


def judged_turns(runs: Sequence[Conversed]) -> pd.DataFrame:
    """Every turn of every run: right or not, and the health of its words.

    is_recall: it asked for the session's first question; such turns are counted apart.
    distinct_2: distinct pairs of tokens over all pairs. repeated: share of tokens that end a run of
    four which the session has said before.
    """
    tables = []
    for summary, answers in runs:
        kept = summary["retention"]
        tables.append(
            answers.drop(columns=["token_ids", "keywords"]).assign(
                variant=variant(summary),
                evidence=summary["evidence"],
                window_tokens=kept["window_tokens"],
                sink_tokens=kept["sink_tokens"],
                is_recall=answers["question_id"].map(is_recall),
                is_right=[
                    is_right(text, keywords)
                    for text, keywords in zip(answers["text"], answers["keywords"], strict=True)
                ],
                distinct_2=[_distinct(list(ids)) for ids in answers["token_ids"]],
                repeated=_repeated(answers),
            )
        )
    return pd.concat(tables, ignore_index=True)


def answered_shares(turns: pd.DataFrame, block_size_tokens: int) -> pd.DataFrame:
    """One row a variant and window: early and late answers, health late, unbounded beside each.

    window_tokens of an unbounded row: the window whose late turns it is judged on. low, high: exact
    95 % interval of the late share, as if turns were independent. recalled: share of sessions that
    told their first question at their end, of recall_turns. pins_said: the sinks, in whole blocks,
    reach beyond every session's first question, into what the model said.
    """
    rows = []
    windows = sorted(turns["window_tokens"].dropna().unique())
    for name, part in turns.groupby("variant", sort=False):
        own = part["window_tokens"].dropna().unique()
        sinks = part["sink_tokens"].iloc[0]
        pinned = -(-sinks // block_size_tokens) * block_size_tokens
        first_said = part.loc[part["turn"] == 0, "position"].max()
        recalls, part = part[part["is_recall"]], part[~part["is_recall"]]
        for window in own if len(own) else windows:
            is_late = part["position"] >= window + block_size_tokens
            late, early = part[is_late], part[~is_late]
            if late.empty:
                continue
            share = Proportion(k=int(late["is_right"].sum()), n=len(late))
            rows.append(
                {
                    "variant": name,
                    "evidence": part["evidence"].iloc[0],
                    "window_tokens": window,
                    "sink_tokens": sinks,
                    "pins_said": bool(pinned > first_said),
                    "is_bounded": bool(len(own)),
                    "early_answered": early["is_right"].mean() if len(early) else None,
                    "late_turns": share.n,
                    "late_answered": share.k / share.n,
                    "low": share.interval[0],
                    "high": share.interval[1],
                    "recall_turns": len(recalls),
                    "recalled": recalls["is_right"].mean() if len(recalls) else None,
                    "late_distinct_2": late["distinct_2"].mean(),
                    "late_repeated": late["repeated"].mean(),
                    "late_entropy_nats": late["entropy_nats"].mean(),
                }
            )
    return pd.DataFrame(rows)


def equivalence(turns: pd.DataFrame, block_size_tokens: int, margin: float) -> pd.DataFrame:
    """Whether each bounded variant answers late turns as the unbounded one does, by session.

    Two one-sided paired t-tests over sessions on the share of right answers; p_value is the larger.
    low, high: 90 % interval of the mean difference, bounded minus unbounded; it lies within the
    margin exactly when p_value is at most 0.05. answering_sessions: with a right late answer.
    """
    turns = turns[~turns["is_recall"]]
    bounded = turns[turns["window_tokens"].notna()]
    unbounded = turns[turns["window_tokens"].isna()]
    rows = []
    for name, part in bounded.groupby("variant", sort=False):
        age = part["window_tokens"].iloc[0] + block_size_tokens
        kept = _by_session(part[part["position"] >= age])
        free = _by_session(unbounded[unbounded["position"] >= age])
        difference = (kept - free).dropna().to_numpy()
        if len(difference) < 2:
            continue
        p_value, low, high = _two_one_sided(difference, margin)
        rows.append(
            {
                "variant": name,
                "evidence": part["evidence"].iloc[0],
                "window_tokens": part["window_tokens"].iloc[0],
                "sink_tokens": part["sink_tokens"].iloc[0],
                "sessions": len(difference),
                "answering_sessions": int((kept > 0).sum()),
                "unbounded_answered": free.mean(),
                "bounded_answered": kept.mean(),
                "difference": difference.mean(),
                "low": low,
                "high": high,
                "margin": margin,
                "p_value": p_value,
            }
        )
    return pd.DataFrame(rows)


def _by_session(turns: pd.DataFrame) -> pd.Series:
    shares: pd.Series = turns.groupby("session_id")["is_right"].mean()
    return shares


def _two_one_sided(
    difference: npt.NDArray[np.float64], margin: float
) -> tuple[float, float, float]:
    mean, error = float(difference.mean()), float(stats.sem(difference))
    if error == 0:
        # All sessions differ by the same: there is nothing to test.
        return (0.0 if abs(mean) < margin else 1.0), mean, mean
    above = stats.ttest_1samp(difference, -margin, alternative="greater").pvalue
    below = stats.ttest_1samp(difference, margin, alternative="less").pvalue
    half = float(stats.t.ppf(0.95, len(difference) - 1)) * error
    return float(max(above, below)), mean - half, mean + half


def _distinct(token_ids: list[int]) -> float:
    pairs = list(itertools.pairwise(token_ids))
    return len(set(pairs)) / len(pairs) if pairs else math.nan


def _repeated(answers: pd.DataFrame) -> list[float]:
    """By turn, in the table's order: sessions lie together, their turns in order."""
    shares: list[float] = []
    seen: set[tuple[int, ...]] = set()
    session = None
    for session_id, token_ids in zip(answers["session_id"], answers["token_ids"], strict=True):
        if session_id != session:
            session, seen = session_id, set()
        ids = [int(token) for token in token_ids]
        runs = [tuple(ids[i : i + _NGRAM]) for i in range(len(ids) - _NGRAM + 1)]
        hits = 0
        for each in runs:
            hits += each in seen
            seen.add(each)
        shares.append(hits / len(runs) if runs else 0.0)
    return shares
