"""One run of conversations inside its own process: questions in turn, and what was answered.

A probe reads the questions; a model that hears is asked them aloud.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from harness.config import RunConfig
from harness.core.errors import ConfigError
from harness.engines.conversing import VllmConversation
from harness.engines.vllm_args import checkpoint_of
from harness.experiments.cores import use_all_cores
from harness.experiments.live_run import REPORT_INTERVAL_S, Progress, Report
from harness.models.chat import Chat, TurnChunk
from harness.telemetry.schemas import ANSWERS
from harness.workload.questions import PROBE_QUESTIONS, Question
from harness.workload.spoken import SpokenQuestions, load_spoken_questions


async def converse_run(run: RunConfig, directory: Path, cache: Path, report: Report) -> None:
    """Hold the run's conversations and write the answers, which are all there or not at all.

    Raises: EngineError if the engine does not start or dies; ConfigError; CorpusError;
        TelemetryError.
    """
    report(Progress(phase="starting"))
    spoken = spoken_questions(run, cache)
    engine = VllmConversation(run, observer_dir=directory, cache=cache)
    answers: list[dict[str, object]] = []
    reporting = asyncio.create_task(_report(answers, report))
    use_all_cores()
    try:
        await engine.start()
        # After the engine core was forked: a tokenizer may start threads.
        chat = Chat(run.model, checkpoint_of(run, cache))
        await asyncio.gather(
            *(
                _converse(engine, chat, run, spoken, session_id, answers)
                for session_id in range(run.workload.num_sessions)
            )
        )
        table = pd.DataFrame(answers).sort_values(["session_id", "turn"], ignore_index=True)
        ANSWERS.write(table, directory)
    finally:
        reporting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reporting
        await engine.stop()


def spoken_questions(run: RunConfig, cache: Path) -> SpokenQuestions | None:
    """What a model that hears is asked; None for a probe. Raises: CorpusError."""
    if run.model.is_probe:
        return None
    rate_hz = run.model.sample_rate_hz
    assert rate_hz is not None, "a model with a chat layout and no weights in a package hears"
    return load_spoken_questions(
        run.workload.corpora, cache_dir=cache / "corpora", sample_rate_hz=rate_hz
    )


async def _converse(
    engine: VllmConversation,
    chat: Chat,
    run: RunConfig,
    spoken: SpokenQuestions | None,
    session_id: int,
    answers: list[dict[str, object]],
) -> None:
    asked = PROBE_QUESTIONS if spoken is None else spoken.asked
    questions = asked.asked(session_id, run.num_frames)
    if spoken is None:
        chunks = chat.written([each.text for each in questions])
    else:
        heard = [spoken.audio_of(each) for each in questions]
        chunks = chat.spoken(heard, engine.audio_front_end)
    _check_room(run, chunks, questions)
    turn, num_tokens = 0, 0
    async for answer in engine.converse_in_turns(session_id, chunks, chat.end_ids):
        num_tokens += chunks[turn].num_tokens
        answers.append(
            {
                "session_id": session_id,
                "turn": turn,
                "question_id": questions[turn].question_id,
                "keywords": list(questions[turn].keywords),
                "position": num_tokens,
                "token_ids": answer.token_ids,
                "text": chat.text(answer.token_ids),
                "entropy_nats": float(np.mean(answer.entropy_nats)),
                "ended": answer.token_ids[-1] in chat.end_ids,
            }
        )
        # The last token said is dropped by the next chunk.
        num_tokens += len(answer.token_ids) - 1
        turn += 1


def _check_room(run: RunConfig, chunks: Sequence[TurnChunk], questions: Sequence[Question]) -> None:
    """Refuse turns longer than the run was planned for; the first also carries the header.

    Raises: ConfigError.
    """
    planned, room = run.model.prompt_tokens_per_frame, run.final_session_tokens
    total = sum(chunk.num_tokens for chunk in chunks)
    if total + len(chunks) * (run.model.output_tokens_per_frame - 1) <= room:
        return
    longest, question = max(
        zip(chunks[1:] or chunks, questions[1:] or questions, strict=True),
        key=lambda asked: asked[0].num_tokens,
    )
    raise ConfigError(
        f"{len(chunks)} turns take {total} prompt tokens (question {question.question_id} alone "
        f"{longest.num_tokens}), over the {planned} a turn that the run was planned for: raise "
        "model.other_tokens_per_frame"
    )


async def _report(answers: list[dict[str, object]], report: Report) -> None:
    while True:
        await asyncio.sleep(REPORT_INTERVAL_S)
        phase = "conversing" if answers else "starting"
        report(Progress(phase=phase, num_released=len(answers), num_tokens=len(answers)))
