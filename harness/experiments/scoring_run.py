"""One scored run inside its own process: every session is told a text."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import numpy as np
import pandas as pd

from harness.config import EngineKind, RunConfig
from harness.engines.reference import ReferenceScorer
from harness.engines.scoring import Scorer, VllmScorer
from harness.engines.vllm_args import checkpoint_of
from harness.experiments.cores import use_all_cores
from harness.experiments.live_run import REPORT_INTERVAL_S, Progress, Report
from harness.telemetry.schemas import ATTENTION, SCORES
from harness.workload.told import told_texts

# Where attention goes, without any bound: on how many first tokens, of a text of this length.
_FIRST_TOKENS = (1, 4, 16, 32)
_ATTENDED_TOKENS = 256


def build_scorer(run: RunConfig, directory: Path, cache: Path) -> Scorer:
    """The scorer that a configuration asks for, not started."""
    if run.engine.kind is EngineKind.reference:
        return ReferenceScorer(run, cache)
    return VllmScorer(run, observer_dir=directory, cache=cache)


async def score_run(run: RunConfig, directory: Path, cache: Path, report: Report) -> None:
    """Score the run's texts and write the scores, which are all there or not at all.

    Raises: EngineError if the engine does not start or dies; ConfigError; CorpusError;
        TelemetryError.
    """
    report(Progress(phase="starting"))
    scorer = build_scorer(run, directory, cache)
    counted = _Counter()
    reporting = asyncio.create_task(_report(counted, run, report))
    use_all_cores()
    try:
        await scorer.start()
        # After the engine core was forked: a tokenizer may start threads.
        told = list(told_texts(run, checkpoint_of(run, cache), cache).items())
        tables = await asyncio.gather(
            *(
                _score(scorer, session_id, name, ids, counted)
                for session_id, (name, ids) in enumerate(told)
            )
        )
        if isinstance(scorer, ReferenceScorer) and not run.retention.is_bounded:
            attended = [await _attend(scorer, name, ids) for name, ids in told]
            ATTENTION.write(pd.concat(attended, ignore_index=True), directory)
        SCORES.write(pd.concat(tables, ignore_index=True), directory)
    finally:
        reporting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reporting
        await scorer.stop()


class _Counter:
    """Tokens scored so far."""

    num_tokens = 0


async def _score(
    scorer: Scorer, session_id: int, name: str, token_ids: list[int], counted: _Counter
) -> pd.DataFrame:
    logprobs: list[float] = []
    async for part in scorer.score(session_id, token_ids):
        logprobs += part.tolist()
        counted.num_tokens += len(part)
    # The first token is given: nothing predicts it.
    return pd.DataFrame(
        {
            "text_id": name,
            "position": range(1, len(token_ids)),
            "token_id": token_ids[1:],
            "logprob": logprobs,
        }
    )


async def _attend(scorer: ReferenceScorer, name: str, token_ids: list[int]) -> pd.DataFrame:
    mass = await scorer.attention_mass(token_ids[:_ATTENDED_TOKENS], _FIRST_TOKENS)
    layers, firsts = np.indices(mass.shape)
    return pd.DataFrame(
        {
            "text_id": name,
            "layer": layers.ravel(),
            "first_tokens": np.asarray(_FIRST_TOKENS)[firsts.ravel()],
            "mass": mass.ravel(),
        }
    )


async def _report(counted: _Counter, run: RunConfig, report: Report) -> None:
    per_frame = run.model.prompt_tokens_per_frame
    while True:
        await asyncio.sleep(REPORT_INTERVAL_S)
        phase = "scoring" if counted.num_tokens else "starting"
        report(
            Progress(
                phase=phase,
                num_released=counted.num_tokens // per_frame,
                num_tokens=counted.num_tokens,
            )
        )
