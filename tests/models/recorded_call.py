"""One call into a live engine, frame by frame: what it said, and what the scheduler then held.

`RecordedCall` runs in this process; the engine runs as in an experiment, in a fork of its own.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
import traceback
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.config import RunConfig
from harness.engines.base import Frame
from harness.engines.vllm_live import VllmEngine


@dataclass
class RecordedCall:
    """Lists with one entry a frame.

    token_ids, logprobs: of the answer's tokens. used_blocks: after the answer.
    computed_tokens: what the scheduler computed for the frame. ingest_s: until the engine asked for
    the next frame, which is when it had processed this one. feature_length: log-mel frames that the
    engine was given, padding included.
    """

    token_ids: list[list[int]] = field(default_factory=list)
    logprobs: list[list[float]] = field(default_factory=list)
    used_blocks: list[int] = field(default_factory=list)
    computed_tokens: list[int] = field(default_factory=list)
    ingest_s: list[float] = field(default_factory=list)
    feature_length: list[int] = field(default_factory=list)


class Listener:
    """A front end that also keeps what the engine answers, with log-probabilities."""

    def __init__(self, front_end: Any) -> None:
        self._front_end = front_end
        self.token_ids: list[int] = []
        self.logprobs: list[float] = []
        self.engine_args = front_end.engine_args
        self.sampling_args = {**front_end.sampling_args, "logprobs": 0}

    def open_session(self, session_id: int) -> Listener:
        return self

    def prompt(self, index: int, audio: npt.NDArray[np.float32]) -> Any:
        return self._front_end.prompt(index, audio)

    def receive(self, completion: Any) -> None:
        self.token_ids += completion.token_ids
        self.logprobs += [
            found[token].logprob
            for token, found in zip(completion.token_ids, completion.logprobs, strict=True)
        ]


def noise(run: RunConfig, count: int) -> list[npt.NDArray[np.float32]]:
    """Distinct frames of noise, (num_samples,) float32; loudness differs from frame to frame."""
    rng = np.random.default_rng(7)
    num_samples = round(run.model.frame_budget_s * run.model.sample_rate_hz)
    return [
        rng.normal(0, rng.uniform(0.01, 0.3), num_samples).astype(np.float32) for _ in range(count)
    ]


async def _converse(run: RunConfig, count: int, directory: Path, cache: Path) -> RecordedCall:
    engine = VllmEngine(run, observer_dir=directory, cache=cache)
    await engine.start()
    listener = Listener(engine._front_end)
    engine._front_end = listener
    call = RecordedCall()
    _note_features(engine, call)
    ready: asyncio.Queue[Frame] = asyncio.Queue()

    async def frames() -> AsyncIterator[Frame]:
        # Stays open after the last frame: an ended session would give its blocks back.
        while True:
            frame = await ready.get()
            handed_over = time.monotonic()
            yield frame
            call.ingest_s.append(time.monotonic() - handed_over)

    answers = engine.converse(1, frames())
    num_tokens = run.model.output_tokens_per_frame
    for index, audio in enumerate(noise(run, count)):
        before = engine.pool()
        assert before is not None
        ready.put_nowait(Frame(1, index, audio, num_tokens))
        missing = num_tokens
        while missing > 0:
            missing -= await anext(answers)
        after = engine.pool()
        assert after is not None
        call.used_blocks.append(after.used_blocks)
        call.computed_tokens.append(after.num_scheduled_tokens - before.num_scheduled_tokens)
        call.token_ids.append(listener.token_ids[-num_tokens:])
        call.logprobs.append(listener.logprobs[-num_tokens:])
    await answers.aclose()  # type: ignore[attr-defined]
    await engine.stop()
    return call


def _note_features(engine: VllmEngine, call: RecordedCall) -> None:
    assert engine._llm is not None
    processor = engine._llm.input_processor
    process = processor.process_inputs

    def noting(*args: Any, **options: Any) -> Any:
        request = process(*args, **options)
        for feature in request.mm_features or ():
            tensors = [field.data for field in feature.data.values()]
            # Of all that describes the audio, its log-mel frames are the longest.
            longest = max(size for tensor in tensors for size in getattr(tensor, "shape", ()))
            call.feature_length.append(longest)
        return request

    processor.process_inputs = noting


def _child(run: RunConfig, count: int, directory: Path, cache: Path, results: Connection) -> None:
    log = os.open(directory / "engine.log", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        results.send(asyncio.run(_converse(run, count, directory, cache)))
    except BaseException:  # noqa: BLE001 - the test that asked for the call reports it
        results.send(traceback.format_exc())


def record_call(run: RunConfig, *, num_frames: int, directory: Path, cache: Path) -> RecordedCall:
    """Hold one call of `num_frames` frames. Raises: AssertionError with the engine's log."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["harness.experiments.vllm_preload"])
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(run, num_frames, directory, cache, send))
    process.start()
    send.close()
    try:
        found = receive.recv()
    except EOFError:
        found = "the engine's process ended"
    process.join(30)
    if isinstance(found, RecordedCall):
        return found
    raise AssertionError(f"{found}\n{(directory / 'engine.log').read_text()[-3000:]}")
