"""Faults of vLLM 0.32 that long-lived streaming sessions meet, each shown in a minute on a CPU.

    python scripts/upstream_faults.py deadlock | max_model_len | resend | garbage | lost

Stock vLLM, a two-layer text model with random weights, no bound, nothing of the harness:
docs/upstream.md says what each shows, and where in vLLM the cause lies.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import pickle
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

os.environ |= {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "HF_HUB_OFFLINE": "1",
    # A function is sent to the worker, to count its objects.
    "VLLM_ALLOW_INSECURE_SERIALIZATION": "1",
}

CHUNK_TOKENS, ANSWER_TOKENS, PERIOD_S = 24, 8, 0.25
PLUGINS_OFF = {"VLLM_PLUGINS": ""}


def tiny_model(directory: Path) -> str:
    """Write a random two-layer text model; returns its directory."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=256,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        tie_word_embeddings=False,
    )
    Qwen2ForCausalLM(config).to(torch.bfloat16).save_pretrained(directory)
    return str(directory)


@asynccontextmanager
async def engine(model: str, **changes: Any) -> AsyncIterator[Any]:
    """A stock AsyncLLM whose pool holds 20 blocks of 32 tokens."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    arguments = {
        "model": model,
        "skip_tokenizer_init": True,
        "enforce_eager": True,
        "block_size": 32,
        "max_model_len": 512,
        "max_num_batched_tokens": 256,
        "max_num_seqs": 8,
        "num_gpu_blocks_override": 21,
        "enable_prefix_caching": False,
        **changes,
    }
    loggers = arguments.pop("stat_loggers", None)
    llm = AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments), stat_loggers=loggers)
    try:
        yield llm
    finally:
        llm.shutdown()
        # Now, since vLLM's destructor fails once the interpreter has begun to end.
        del llm
        gc.collect()


async def call(llm: Any, name: str, num_frames: int, heard: list[float]) -> None:
    """One session: a chunk every period, whatever the engine does; notes when tokens came."""
    from vllm import SamplingParams
    from vllm.engine.protocol import StreamingInput
    from vllm.sampling_params import RequestOutputKind

    sampling = SamplingParams(
        max_tokens=ANSWER_TOKENS,
        ignore_eos=True,
        temperature=0.0,
        detokenize=False,
        output_kind=RequestOutputKind.DELTA,
    )

    async def chunks() -> AsyncIterator[Any]:
        for frame in range(num_frames):
            ids = [(7 * frame + k) % 250 + 1 for k in range(CHUNK_TOKENS)]
            yield StreamingInput(prompt={"prompt_token_ids": ids}, sampling_params=sampling)
            await asyncio.sleep(PERIOD_S)

    async for output in llm.generate(chunks(), sampling, request_id=name):
        if output.outputs[0].token_ids:
            heard.append(time.monotonic())


async def deadlock(model: str) -> None:
    """Four sessions on a pool that holds 5 frames of each: then silence, and all looks well."""
    from vllm.v1.metrics.loggers import StatLoggerBase

    seen: list[tuple[float, Any]] = []

    class Gauges(StatLoggerBase):  # type: ignore[misc]  # vLLM is untyped for mypy
        def __init__(self, *args: Any) -> None: ...
        def log_engine_initialized(self) -> None: ...

        def record(self, scheduler_stats: Any, *args: Any, **kwargs: Any) -> None:
            if scheduler_stats is not None:
                seen.append((time.monotonic(), scheduler_stats))

    async with engine(model, stat_loggers=[Gauges]) as llm:
        heard: list[float] = []
        started = time.monotonic()
        calls = [asyncio.create_task(call(llm, f"call-{n}", 60, heard)) for n in range(4)]
        await asyncio.sleep(12)
        await llm.check_health()
        now = time.monotonic()
        at, gauges = seen[-1]
        print(f"after {now - started:.1f} s check_health() raises nothing; no call has failed")
        print(f"last token of any call: {now - heard[-1]:.1f} s ago")
        print(
            f"gauges of {now - at:.1f} s ago: running={gauges.num_running_reqs}, "
            f"waiting={gauges.num_waiting_reqs}, KV usage={gauges.kv_cache_usage:.2f}"
        )
        assert now - heard[-1] > 4, "no deadlock"
        for task in calls:
            task.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


async def max_model_len(model: str) -> None:
    """One session reaches max_model_len, where others are far from it: all of them die."""
    heard: dict[str, list[float]] = {"old": [], "young": []}
    async with engine(model, max_model_len=256, num_gpu_blocks_override=61) as llm:
        old = asyncio.create_task(call(llm, "old", 20, heard["old"]))
        await asyncio.sleep(5 * PERIOD_S)
        young = asyncio.create_task(call(llm, "young", 6, heard["young"]))
        ends = await asyncio.gather(old, young, return_exceptions=True)
    for name, end in zip(heard, ends, strict=True):
        print(f"{name}: {len(heard[name])} outputs, then {type(end).__name__}: {str(end)[:80]}")
    assert all(isinstance(end, Exception) for end in ends), "a session survived"


def weighing_scheduler() -> type:
    """VLLM's scheduler, which notes how many bytes it hands over with each chunk."""
    from vllm.v1.core.sched.scheduler import Scheduler

    class Weighing(Scheduler):  # type: ignore[misc]  # vLLM is untyped for mypy
        def schedule(self, *args: Any, **kwargs: Any) -> Any:
            output = super().schedule(*args, **kwargs)
            if output.scheduled_new_reqs:
                with Path(os.environ["SIZES"]).open("a") as file:
                    file.write(f"{len(pickle.dumps(output.scheduled_new_reqs))}\n")
            return output

    return Weighing


def __getattr__(name: str) -> type:
    # The engine core imports this script by its name, and only there is vLLM loaded already.
    if name == "Weighing":
        return weighing_scheduler()
    raise AttributeError(name)


async def resend(model: str) -> None:
    """What the scheduler hands to the worker for one chunk of 24 tokens, by the session's age."""
    log = Path(model) / "sizes.txt"
    os.environ["SIZES"] = str(log)
    async with engine(
        model,
        max_model_len=4096,
        num_gpu_blocks_override=140,
        scheduler_cls="upstream_faults.Weighing",
    ) as llm:
        await call(llm, "call", 60, [])
    sizes = [int(line) for line in log.read_text().split()]
    for frame in (1, 20, 40, 60):
        print(f"frame {frame}: {sizes[frame - 1]} bytes for {CHUNK_TOKENS} new tokens")
    assert sizes[59] > 5 * sizes[0], "the history is not sent again"


async def garbage(model: str) -> None:
    """Objects that the worker's garbage collector walks at every full collection."""
    async with engine(model) as llm:
        (frozen,) = await llm.collective_rpc(_frozen_objects)
        (tracked,) = await llm.collective_rpc(_tracked_objects)
    print(f"worker: {frozen} objects frozen, {tracked} walked by every full collection")
    assert frozen == 0, "the worker froze its heap"


def _frozen_objects(worker: Any) -> int:
    return gc.get_freeze_count()


def _tracked_objects(worker: Any) -> int:
    return len(gc.get_objects())


async def lost(model: str) -> None:
    """A session is preempted while its last token is in flight, and never runs again.

    vLLM's scheduler alone, without an engine: two steps are planned ahead of the first's outcome.
    """
    core = scheduler_alone(model)
    # Two blocks each fill the pool. In step 10 the first needs a third, when the second's last
    # token, of step 9, is still in flight.
    core.add_request(streamed("first", 24, max_tokens=40))
    core.add_request(streamed("second", 24, max_tokens=9))
    planned, said = [core.schedule()], {"first": 0, "second": 0}
    run_ahead(core, planned, said, num_steps=9)
    session = core.requests["second"]
    print(f"after step 9: preempted {session.num_preemptions} time, all 9 tokens said: {said}")
    run_ahead(core, planned, said, num_steps=40)
    core.finish_requests("first", request_status().FINISHED_ABORTED)
    core.add_request(streamed("second", 24, max_tokens=9))
    run_ahead(core, planned, said, num_steps=100)
    queues = core.running, core.waiting, core.kv_holding_waiting, core.deferred_waiting
    print(f"100 steps after its next chunk, alone: {said['second'] - 9} tokens, {session.status}")
    print(
        f"requests known: {len(core.requests)}; running, waiting, paused, deferred: "
        f"{[len(queue) for queue in queues]}; KV usage {core.kv_cache_manager.usage:.2f}"
    )
    assert said["second"] == 9, "the session went on"
    assert session in core.requests.values(), "the session ended"


def scheduler_alone(model: str) -> Any:
    """VLLM's AsyncScheduler over 4 blocks of 16 tokens, and no model."""
    import torch
    from vllm.engine.arg_utils import EngineArgs
    from vllm.v1.core.sched.async_scheduler import AsyncScheduler
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
    from vllm.v1.structured_output import StructuredOutputManager

    config = EngineArgs(
        model=model,
        skip_tokenizer_init=True,
        block_size=16,
        max_model_len=64,
        max_num_batched_tokens=256,
        enable_prefix_caching=False,
        async_scheduling=True,
    ).create_engine_config()
    config.cache_config.num_gpu_blocks = 5
    spec = FullAttentionSpec(block_size=16, num_kv_heads=2, head_size=32, dtype=torch.bfloat16)
    return AsyncScheduler(
        vllm_config=config,
        kv_cache_config=KVCacheConfig(
            num_blocks=5, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["0"], spec)]
        ),
        structured_output_manager=StructuredOutputManager(config),
        block_size=16,
        hash_block_size=16,
        log_stats=False,
    )


def request_status() -> Any:
    """VLLM's names of what becomes of a request."""
    from vllm.v1.request import RequestStatus

    return RequestStatus


def streamed(name: str, num_tokens: int, *, max_tokens: int) -> Any:
    """A chunk of a streaming session, as the engine core hands it to the scheduler."""
    from vllm import SamplingParams
    from vllm.v1.request import Request

    sampling = SamplingParams(max_tokens=max_tokens, ignore_eos=True, detokenize=False)
    return Request(name, [1] * num_tokens, sampling, None, resumable=True)


def run_ahead(core: Any, planned: list[Any], said: dict[str, int], *, num_steps: int) -> None:
    """Plan each step before the one before is known, as asynchronous scheduling does.

    planned: the steps whose outcome is not known yet. said: counts the tokens that the scheduler
    hands out; each request samples one a step.
    """
    from vllm.v1.outputs import ModelRunnerOutput

    for _ in range(num_steps):
        planned.append(core.schedule())
        plan = planned.pop(0)
        names = list(plan.num_scheduled_tokens)
        output = ModelRunnerOutput(
            req_ids=names,
            req_id_to_index={name: index for index, name in enumerate(names)},
            sampled_token_ids=[[7]] * len(names),
        )
        for group in core.update_from_output(plan, output).values():
            for answer in group.outputs:
                said[answer.request_id] += len(answer.new_token_ids)


FAULTS = {fault.__name__: fault for fault in (deadlock, max_model_len, resend, garbage, lost)}


def main() -> None:
    """Show one fault; ends with an assertion if this vLLM does not have it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("fault", choices=FAULTS, help="which one")
    fault = FAULTS[parser.parse_args().fault]
    os.environ |= PLUGINS_OFF
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(fault(tiny_model(Path(directory))))


if __name__ == "__main__":
    main()
