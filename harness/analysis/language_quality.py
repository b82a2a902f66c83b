"""What forgetting costs in language quality, from the log-probabilities of told texts.

A text is the unit: means are over tokens within a text, then over texts, and intervals resample
texts. Perplexity is exp of the mean negative log-likelihood. A variant is compared with the
unbounded one on the same tokens of the same texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from harness.analysis.runs import variant

RESAMPLES = 2000
# Ages, in units of W, are shown in bins of this width.
AGE_BIN = 0.25

Scored = tuple[dict[str, Any], pd.DataFrame]


def told_texts(runs: Sequence[Scored], block_size_tokens: int) -> pd.DataFrame:
    """Every scored token of every run, beside what its session kept.

    kept_sink_tokens: what is really pinned: whole blocks in vLLM, exactly S in the reference.
    """
    tables = []
    for summary, scores in runs:
        kept = summary["retention"]
        sinks = kept["sink_tokens"]
        whole = -(-sinks // block_size_tokens) * block_size_tokens
        tables.append(
            scores.assign(
                variant=variant(summary),
                evidence=summary["evidence"],
                window_tokens=kept["window_tokens"],
                sink_tokens=sinks,
                kept_sink_tokens=sinks if summary["engine"] == "reference" else whole,
            )
        )
    return pd.concat(tables, ignore_index=True)


def perplexity_by_age(tokens: pd.DataFrame) -> pd.DataFrame:
    """Perplexity of every bounded variant, and of unbounded on the same tokens, by age over W.

    One row a variant and bin: evidence, window_tokens, kept_sink_tokens (null: unbounded), age (the
    bin's middle), perplexity, low, high.
    """
    unbounded = _unbounded(tokens)
    rows: list[dict[str, Any]] = []
    for (evidence, window, sinks), kept in _variants(tokens):
        same = unbounded[unbounded["position"] <= kept["position"].max()]
        is_first = not any(r["window_tokens"] == window and r["kept"] == "all" for r in rows)
        shown = [(kept, evidence, f"{sinks:.0f}")]
        if is_first and len(same):
            shown.append((same, str(same["evidence"].iloc[0]), "all"))
        for table, source, label in shown:
            bins = np.floor(table["position"] / window / AGE_BIN)
            for bin_number, part in table.groupby(bins):
                found = _perplexity(part)
                rows.append(
                    {
                        "evidence": source,
                        "window_tokens": window,
                        "kept": label,
                        "age": (bin_number + 0.5) * AGE_BIN,
                        "perplexity": found[0],
                        "low": found[1],
                        "high": found[2],
                    }
                )
    return pd.DataFrame(rows)


def late_quality(tokens: pd.DataFrame, block_size_tokens: int) -> pd.DataFrame:
    """Quality once the window has slid past the start, against unbounded on the same tokens.

    Late tokens lie at least W and a block behind the start. ratio: of perplexities, with its 95 %
    interval over texts. drift_nats: loss in the later half of the late tokens minus that in the
    earlier half, with its interval; 0 if quality does not depend on age.
    """
    unbounded = _unbounded(tokens)
    rows = []
    for (evidence, window, sinks), kept in _variants(tokens):
        late = kept[kept["position"] >= window + block_size_tokens]
        paired = late.merge(
            unbounded[["text_id", "position", "logprob"]],
            on=["text_id", "position"],
            suffixes=("", "_unbounded"),
        )
        if paired.empty:
            continue
        loss = paired["logprob_unbounded"] - paired["logprob"]
        middle = (paired["position"].min() + paired["position"].max()) / 2
        is_later = paired["position"] > middle
        by_text = loss.groupby(paired["text_id"]).mean()
        later = loss[is_later].groupby(paired["text_id"]).mean()
        drift = (later - loss[~is_later].groupby(paired["text_id"]).mean()).to_numpy()
        low, high = interval(by_text.to_numpy())
        drift_low, drift_high = interval(drift)
        rows.append(
            {
                "evidence": evidence,
                "window_tokens": window,
                "kept_sink_tokens": sinks,
                "texts": len(by_text),
                "late_tokens": len(paired),
                "perplexity": _mean_perplexity(paired, "logprob"),
                "unbounded_perplexity": _mean_perplexity(paired, "logprob_unbounded"),
                "ratio": float(np.exp(by_text.mean())),
                "ratio_low": float(np.exp(low)),
                "ratio_high": float(np.exp(high)),
                "drift_nats": float(drift.mean()),
                "drift_low": drift_low,
                "drift_high": drift_high,
            }
        )
    return pd.DataFrame(rows)


def attention_by_layer(attended: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Attention on the first tokens, mean over texts; columns layer, first_tokens, mass."""
    if not attended:
        return pd.DataFrame({"layer": [], "first_tokens": [], "mass": []})
    table = pd.concat(attended, ignore_index=True)
    return table.groupby(["layer", "first_tokens"])["mass"].mean().reset_index()


def interval(per_text: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Bootstrap interval at 95 % of a mean over texts; it is the mean itself for one text."""
    if len(per_text) < 2:
        return float(per_text.mean()), float(per_text.mean())
    found = stats.bootstrap(
        (per_text,),
        np.mean,
        n_resamples=RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return float(found.low), float(found.high)


def _unbounded(tokens: pd.DataFrame) -> pd.DataFrame:
    """Of the live engine; the reference's is told only for a look at its attention."""
    is_unbounded = tokens["window_tokens"].isna()
    is_reference = tokens["evidence"].str.startswith("reference")
    return tokens[is_unbounded & ~is_reference]


def _variants(tokens: pd.DataFrame) -> Any:
    bounded = tokens[tokens["window_tokens"].notna()]
    return bounded.groupby(["evidence", "window_tokens", "kept_sink_tokens"])


def _perplexity(tokens: pd.DataFrame) -> tuple[float, float, float]:
    per_text = -tokens.groupby("text_id")["logprob"].mean().to_numpy()
    low, high = interval(per_text)
    return float(np.exp(per_text.mean())), float(np.exp(low)), float(np.exp(high))


def _mean_perplexity(tokens: pd.DataFrame, column: str) -> float:
    return float(np.exp(-tokens.groupby("text_id")[column].mean().mean()))
