"""Told texts with a planted loss: what the tables and the rule make of them."""

import numpy as np
import pandas as pd
import pytest

from harness.analysis.language_quality import late_quality, perplexity_by_age, told_texts
from harness.claims.judgement import ClaimVerdict
from harness.claims.sinks import language_quality

WINDOW, BLOCK, LENGTH = 128, 32, 512


def scores(loss_per_token, seed: int = 0) -> pd.DataFrame:
    """Five texts of 512 tokens; `loss_per_token` of age over W is taken off each late token."""
    tables = []
    for text in range(5):
        rng = np.random.default_rng([seed, text])
        position = np.arange(1, LENGTH)
        age = position / WINDOW
        logprob = -3.0 - rng.normal(0, 0.5, len(position)) - 0.1 * text
        logprob -= np.where(position >= WINDOW + BLOCK, loss_per_token(age), 0)
        tables.append(
            pd.DataFrame(
                {
                    "text_id": f"text_{text}",
                    "position": position,
                    "token_id": 1,
                    "logprob": logprob,
                }
            )
        )
    return pd.concat(tables, ignore_index=True)


def summary(window: int | None, sinks: int, engine: str = "vllm") -> dict:
    kept = {"window_tokens": window, "sink_tokens": sinks}
    evidence = "reference-smollm2" if engine == "reference" else "live-smollm2"
    return {"retention": kept, "engine": engine, "evidence": evidence}


def tables(without, with_sinks) -> dict[str, pd.DataFrame]:
    runs = [
        (summary(None, 0), scores(lambda age: 0 * age)),
        (summary(WINDOW, 0), scores(without)),
        (summary(WINDOW, 4), scores(with_sinks)),
    ]
    tokens = told_texts(runs, BLOCK)
    return {"late": late_quality(tokens, BLOCK), "by_age": perplexity_by_age(tokens)}


def test_a_loss_that_sinks_undo_reproduces_the_claim() -> None:
    found = language_quality(tables(lambda a: 0.7 + 0 * a, lambda a: 0.03 + 0 * a))
    assert found.verdict is ClaimVerdict.REPRODUCED
    assert "W=128: 2.01 / 1.03" in found.ours


@pytest.mark.parametrize(
    ("without", "with_sinks", "why"),
    [
        (lambda a: 0.7 + 0 * a, lambda a: 0.6 + 0 * a, "win back at least 50%"),
        (lambda a: 0 * a, lambda a: 0 * a, "every window loses quality"),
        (lambda a: 0.7 + 0 * a, lambda a: 0.2 + 0 * a, "within 10% of unbounded"),
        (lambda a: 0.9 + 0 * a, lambda a: 0.1 * (a - 2.6), "does not depend on age"),
    ],
)
def test_each_part_of_the_claim_can_fail(without, with_sinks, why) -> None:
    found = language_quality(tables(without, with_sinks))
    assert found.verdict is ClaimVerdict.PARTLY
    assert why in found.why


def test_the_loss_is_taken_on_the_same_tokens_and_live_sinks_are_whole_blocks() -> None:
    late = tables(lambda a: 0.5 + 0 * a, lambda a: 0 * a)["late"].set_index("kept_sink_tokens")
    assert list(late.index) == [0, 32]
    assert late.loc[0, "late_tokens"] == 5 * (LENGTH - WINDOW - BLOCK)
    assert late.loc[0, "ratio"] == pytest.approx(np.exp(0.5))
    # The same loss of every text leaves no spread between texts.
    assert late.loc[0, "ratio_low"] == pytest.approx(late.loc[0, "ratio_high"])
    assert late.loc[32, "ratio"] == pytest.approx(1.0)


def test_unbounded_is_shown_once_a_window_up_to_the_age_the_window_was_told() -> None:
    by_age = tables(lambda a: 0 * a, lambda a: 0 * a)["by_age"]
    counts = by_age.groupby("kept").size()
    assert counts.to_dict() == {"0": 16, "32": 16, "all": 16}
    assert by_age["age"].max() == pytest.approx(3.875)
    assert (by_age["low"] <= by_age["perplexity"]).all()


def test_without_late_tokens_nothing_is_claimed() -> None:
    assert language_quality({"": pd.DataFrame()}).verdict is ClaimVerdict.NOT_MEASURED
