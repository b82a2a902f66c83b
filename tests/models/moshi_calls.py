"""Calls into a live Moshi, each engine in a process of its own: what was heard, said, and when.

A plan is an async function of a started engine; `in_a_process` runs one and returns what it found.
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
from harness.models.front_ends import moshi as front_ends


@dataclass
class HeardCall:
    """Lists with one entry a frame.

    heard: the user's codes. said: text id and own codes, as decided in one step. spoken: the same
    aligned in time, from the second frame on. latency_s: from frame to answer.
    """

    heard: list[list[int]] = field(default_factory=list)
    said: list[list[int]] = field(default_factory=list)
    spoken: list[list[int]] = field(default_factory=list)
    latency_s: list[float] = field(default_factory=list)


class _Ear:
    """A codec that remembers what it heard."""

    def __init__(self, encoder: Any, notes: HeardCall) -> None:
        self._encoder = encoder
        self._notes = notes

    def encode(self, audio: npt.NDArray[np.float32]) -> list[int]:
        codes: list[int] = self._encoder.encode(audio)
        self._notes.heard.append(codes)
        return codes


class ListeningFrontEnd(front_ends.MoshiFrontEnd):
    """Keeps what its calls hear and say."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.notes: dict[int, HeardCall] = {}

    def open_session(self, session_id: int) -> front_ends.MoshiCall:
        call = super().open_session(session_id)
        notes = self.notes[session_id] = HeardCall()
        call._encoder = _Ear(call._encoder, notes)  # type: ignore[assignment]
        receive = call.receive

        def noted(completion: Any) -> None:
            text, codes = call._ids.unpack(completion.logprobs[-1])
            notes.said.append([text, *codes])
            receive(completion)
            notes.spoken += [[frame.text, *frame.codes] for frame in call.spoken[-1:]]

        call.receive = noted  # type: ignore[method-assign]
        return call


def sound(run: RunConfig, session_id: int, count: int) -> list[npt.NDArray[np.float32]]:
    """Frames of a tone of another pitch and loudness each, and noise."""
    rng = np.random.default_rng(session_id)
    num_samples = round(run.model.frame_budget_s * run.model.sample_rate_hz)
    clock = np.arange(num_samples) / run.model.sample_rate_hz
    frames = []
    for _ in range(count):
        tone = np.sin(2 * np.pi * 80 * 50 ** rng.uniform() * clock)
        loud = 0.5 * rng.uniform() ** 2
        frames.append((loud * (tone + 0.3 * rng.normal(size=num_samples))).astype(np.float32))
    return frames


class Caller:
    """One call that says a frame, waits for the answer, and says the next."""

    def __init__(self, engine: VllmEngine, run: RunConfig, session_id: int, count: int) -> None:
        self._frames = iter(enumerate(sound(run, session_id, count)))
        self._session_id = session_id
        self._offered: asyncio.Queue[Frame | None] = asyncio.Queue()
        self._answers = engine.converse(session_id, self._offers())
        front_end = engine._front_end
        assert isinstance(front_end, ListeningFrontEnd)
        self._front_end = front_end

    async def _offers(self) -> AsyncIterator[Frame]:
        while (frame := await self._offered.get()) is not None:
            yield frame

    async def say(self, count: int) -> list[float]:
        """Latency of each of the next frames, seconds."""
        latencies = []
        for _ in range(count):
            index, audio = next(self._frames)
            start = time.perf_counter()
            self._offered.put_nowait(Frame(self._session_id, index, audio, 1))
            assert await anext(self._answers) == 1
            latencies.append(time.perf_counter() - start)
        return latencies

    @property
    def notes(self) -> HeardCall:
        return self._front_end.notes[self._session_id]

    async def hang_up(self) -> None:
        self._offered.put_nowait(None)
        async for _ in self._answers:
            raise AssertionError("an answer without a frame")


async def talk(engine: VllmEngine, run: RunConfig, num_frames: int) -> dict[str, Any]:
    """Two calls side by side, and what the scheduler counted."""
    callers = [Caller(engine, run, session_id, num_frames) for session_id in (1, 2)]
    before = engine.pool()
    await asyncio.gather(*(caller.say(num_frames) for caller in callers))
    after = engine.pool()
    assert before is not None
    assert after is not None
    await asyncio.gather(*(caller.hang_up() for caller in callers))
    return {
        "calls": [caller.notes for caller in callers],
        "scheduled_tokens": after.num_scheduled_tokens - before.num_scheduled_tokens,
        "used_blocks": after.used_blocks - before.used_blocks,
    }


async def age(engine: VllmEngine, run: RunConfig, young: int, old: int) -> dict[str, Any]:
    """A young and an old call, frame by frame in turns: what else the machine does hits both."""
    rounds = 100
    elder = Caller(engine, run, 1, old + rounds // 2)
    await elder.say(old - rounds // 2)
    junior = Caller(engine, run, 2, young + rounds // 2)
    await junior.say(young - rounds // 2)
    latency_s: dict[str, list[float]] = {"young": [], "old": []}
    for _ in range(rounds):
        latency_s["young"] += await junior.say(1)
        latency_s["old"] += await elder.say(1)
    return latency_s


def in_a_process(
    plan: str, run: RunConfig, directory: Path, cache: Path, *arguments: int
) -> dict[str, Any]:
    """Run a plan of this module on a fresh engine."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["harness.experiments.vllm_preload"])
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(plan, run, directory, cache, arguments, send))
    process.start()
    send.close()
    try:
        found = receive.recv()
    except EOFError:
        found = "the process died"
    finally:
        process.join(30)
        receive.close()
    if isinstance(found, str):
        raise AssertionError(f"{found}\n{(directory / 'engine.log').read_text()[-3000:]}")
    return dict(found)


def _child(
    plan: str,
    run: RunConfig,
    directory: Path,
    cache: Path,
    arguments: tuple[int, ...],
    results: Connection,
) -> None:
    log = os.open(directory / "engine.log", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    front_ends.MoshiFrontEnd = ListeningFrontEnd  # type: ignore[misc]

    async def main() -> dict[str, Any]:
        engine = VllmEngine(run, observer_dir=directory, cache=cache)
        try:
            await engine.start()
            found: dict[str, Any] = await globals()[plan](engine, run, *arguments)
        finally:
            await engine.stop()
        return found

    try:
        results.send(asyncio.run(main()))
    except BaseException:  # noqa: BLE001 - reported by the test that asked
        results.send(traceback.format_exc())
