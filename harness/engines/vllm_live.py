"""The real engine: vLLM's AsyncLLM with streaming-input sessions.

The engine core runs in its own process, the worker inside it. On a CPU the core is forked, not
spawned: the process that calls `start()` must hold no other threads then (see
harness/experiments/isolation.py), and a fresh engine costs about 3 s instead of 17.
Leans on vllm 0.32: `AsyncEngineArgs`, `AsyncLLM.from_vllm_config`, `AsyncLLM.generate`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.config import RunConfig
from harness.core.errors import EngineError
from harness.core.notices import Notice
from harness.core.pool_state import PoolState, PoolStatePage
from harness.engines.base import Frame
from harness.engines.sessions import Part, Said, preemption_notice, session_requests
from harness.engines.vllm_args import checkpoint_of, engine_args
from harness.kv.retention import recycling_of
from harness.models.front_ends import FrontEnd, load_front_end

if TYPE_CHECKING:
    from vllm import SamplingParams
    from vllm.v1.engine.async_llm import AsyncLLM

WARMUP_SESSION = -1


class VllmEngine:
    """A fresh vLLM engine for one run.

    observer_dir: directory for the scheduler's state page, preemption log and bound report.
    cache: directory of tiny checkpoints.
    """

    def __init__(self, run: RunConfig, *, observer_dir: Path, cache: Path) -> None:
        self._run = run
        self._observer_dir = observer_dir
        self._cache = cache
        self._front_end: FrontEnd | None = None
        self._llm: AsyncLLM | None = None
        self._page: PoolStatePage | None = None
        self._notices: list[Notice] = []

    async def start(self) -> None:
        """Start the engine, check that the bound is in force, and warm it up.

        Raises: EngineError if vLLM refuses or fails to start, or runs without the bound.
        """
        from harness.engines import observed_scheduler as observed

        self._page = PoolStatePage(self._observer_dir / observed.STATE_PAGE, create=True)
        report_path = self._observer_dir / observed.BOUND_REPORT
        try:
            self._llm = self._build()
        except (ValueError, RuntimeError, AssertionError, OSError, ImportError) as error:
            raise EngineError(_why_not_started(error, report_path)) from error
        self._check_bound(json.loads(report_path.read_text()))
        await self._warm_up()

    def _build(self) -> AsyncLLM:
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        from harness.vllm_plugin.refusals import check_engine_config

        checkpoint = checkpoint_of(self._run, self._cache)
        self._front_end = load_front_end(self._run.model, Path(checkpoint))
        arguments = engine_args(self._run, checkpoint, self._front_end, self._observer_dir)
        config = AsyncEngineArgs(**arguments).create_engine_config()
        # The engine core would say only that it failed.
        check_engine_config(config)
        if config.device_config.device_type == "cpu":
            # Only after the configuration is made: making it resets the start method.
            os.environ["VLLM_WORKER_MULTIPROC_METHOD"] = "fork"
        return AsyncLLM.from_vllm_config(config, disable_log_stats=True)

    def _check_bound(self, report: dict[str, Any]) -> None:
        kept = self._run.retention
        # A recycled session is bounded by its requests; the engine keeps all of each.
        wanted = (kept.window_tokens if kept.is_evicting else None, kept.sink_tokens)
        found = (report["window_tokens"], report["sink_tokens"])
        if found != wanted:
            raise EngineError(
                f"the engine keeps W={found[0]}, S={found[1]} of a session, not the configured "
                f"W={wanted[0]}, S={wanted[1]}: is the harness installed "
                "(`pip install -e .`) and VLLM_PLUGINS unset?"
            )

    async def _warm_up(self) -> None:
        """Pay lazy initialisation in a throw-away session whose blocks are returned.

        Where sessions are recycled, this one is as well: once.
        """
        num_frames = self._run.engine.warmup_frames
        recycling = recycling_of(self._run.retention, self._run.model.kv_tokens_per_frame)
        if recycling is not None:
            num_frames = max(num_frames, recycling.frames_per_request + 1)
        num_samples = self._run.model.frame_samples
        noise = np.random.default_rng(0).normal(0, 0.01, num_samples).astype(np.float32)
        output_tokens = self._run.model.output_tokens_per_frame

        async def frames() -> AsyncIterator[Frame]:
            for index in range(num_frames):
                yield Frame(WARMUP_SESSION, index, noise, output_tokens)

        async for _ in self.converse(WARMUP_SESSION, frames()):
            pass
        self._notices.clear()

    async def converse(self, session_id: int, frames: AsyncIterator[Frame]) -> AsyncIterator[int]:
        """One streaming-input request after the other, each ended before it would hold too much."""
        said = Said()
        async for part in session_requests(self._run, session_id, frames, self._notices):
            said.forget_all_but(part.kept)
            async for num_tokens in self._request(part, session_id, said):
                yield num_tokens

    async def _request(self, part: Part, session_id: int, said: Said) -> AsyncIterator[int]:
        """One request: every frame extends its prompt and decodes a fixed count of tokens.

        What a recycled request keeps goes in with its first new frame.
        """
        from vllm.engine.protocol import StreamingInput
        from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

        if self._llm is None or self._front_end is None:
            raise EngineError("the engine is not running: start() was not called or failed")
        call = self._front_end.open_session(session_id)
        kept = said.with_answers(part.kept)

        async def chunks() -> AsyncIterator[StreamingInput]:
            nonlocal kept
            async for frame in part.frames:
                said.expect(frame)
                if kept:
                    prompt = call.recycled_prompt(kept, frame.index, frame.audio)
                    kept = []
                else:
                    prompt = call.prompt(frame.index, frame.audio)
                if inspect.isawaitable(prompt):
                    prompt = await prompt
                yield StreamingInput(
                    prompt=prompt, sampling_params=self._sampling(frame.output_tokens)
                )

        sampling = self._sampling(self._run.model.output_tokens_per_frame)
        try:
            async for output in self._llm.generate(chunks(), sampling, request_id=part.name):
                if output.outputs and output.outputs[0].token_ids:
                    said.receive(output.outputs[0].token_ids)
                    call.receive(output.outputs[0])
                    yield len(output.outputs[0].token_ids)
        except (EngineDeadError, EngineGenerateError) as error:
            raise EngineError(f"vLLM's engine core died: {_last_line(error)}") from error

    def _sampling(self, output_tokens: int) -> SamplingParams:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        assert self._front_end is not None
        return SamplingParams(
            max_tokens=output_tokens,
            min_tokens=output_tokens,
            ignore_eos=True,
            temperature=0.0,
            output_kind=RequestOutputKind.DELTA,
            detokenize=False,
            **self._front_end.sampling_args,
        )

    def pool(self) -> PoolState | None:
        """The scheduler's last published state."""
        return self._page.read() if self._page else None

    def notices(self) -> list[Notice]:
        """Rotations, and the preemptions that the observed scheduler wrote down."""
        from harness.engines.observed_scheduler import PREEMPTION_LOG

        log = self._observer_dir / PREEMPTION_LOG
        entries = (
            [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        )
        preemptions = [
            preemption_notice(entry["t_s"], entry["request_id"], entry["num_computed_tokens"])
            for entry in entries
        ]
        return [*self._notices, *preemptions]

    async def stop(self) -> None:
        """Shut the engine core down."""
        if self._llm is not None:
            llm, self._llm = self._llm, None
            await asyncio.get_running_loop().run_in_executor(None, llm.shutdown, 0.0)


def _why_not_started(error: BaseException, report_path: Path) -> str:
    """What the scheduler found wrong with the bound, or vLLM's own words."""
    report = json.loads(report_path.read_text()) if report_path.exists() else {}
    return str(report.get("error", f"vLLM did not start: {_last_line(error)}"))


def _last_line(error: BaseException) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
