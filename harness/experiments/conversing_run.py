"""One run of conversations inside its own process: questions in turn, and what was answered."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import numpy as np
import pandas as pd

from harness.config import RunConfig
from harness.engines.conversing import VllmConversation
from harness.experiments.cores import use_all_cores
from harness.experiments.live_run import REPORT_INTERVAL_S, Progress, Report
from harness.models.chat import Chat
from harness.models.probe import probe_checkpoint
from harness.telemetry.schemas import ANSWERS
from harness.workload.questions import asked


async def converse_run(run: RunConfig, directory: Path, cache: Path, report: Report) -> None:
    """Hold the run's conversations and write the answers, which are all there or not at all.

    Raises: EngineError if the engine does not start or dies; ConfigError; TelemetryError.
    """
    report(Progress(phase="starting"))
    engine = VllmConversation(run, observer_dir=directory, cache=cache)
    answers: list[dict[str, object]] = []
    reporting = asyncio.create_task(_report(answers, report))
    use_all_cores()
    try:
        await engine.start()
        # After the engine core was forked: a tokenizer may start threads.
        chat = Chat(probe_checkpoint(run.model, cache))
        await asyncio.gather(
            *(_converse(engine, chat, run, n, answers) for n in range(run.workload.num_sessions))
        )
        table = pd.DataFrame(answers).sort_values(["session_id", "turn"], ignore_index=True)
        ANSWERS.write(table, directory)
    finally:
        reporting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reporting
        await engine.stop()


async def _converse(
    engine: VllmConversation,
    chat: Chat,
    run: RunConfig,
    session_id: int,
    answers: list[dict[str, object]],
) -> None:
    questions = asked(session_id, run.num_frames)
    chunks = chat.turns([each.text for each in questions])
    turn, num_tokens = 0, 0
    async for answer in engine.converse_in_turns(session_id, chunks, chat.end_id):
        num_tokens += len(chunks[turn])
        answers.append(
            {
                "session_id": session_id,
                "turn": turn,
                "question_id": questions[turn].question_id,
                "position": num_tokens,
                "token_ids": answer.token_ids,
                "text": chat.text(answer.token_ids),
                "entropy_nats": float(np.mean(answer.entropy_nats)),
                "ended": answer.token_ids[-1] == chat.end_id,
            }
        )
        # The last token said is dropped by the next chunk.
        num_tokens += len(answer.token_ids) - 1
        turn += 1


async def _report(answers: list[dict[str, object]], report: Report) -> None:
    while True:
        await asyncio.sleep(REPORT_INTERVAL_S)
        phase = "conversing" if answers else "starting"
        report(Progress(phase=phase, num_released=len(answers), num_tokens=len(answers)))
