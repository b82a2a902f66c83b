"""Serves token ids with in-process vLLM engines, each in a fork of this program.

Reads jobs from standard input, one JSON object a line, and answers each with one line on standard
output. vLLM is imported once; an engine then costs two seconds and leaves nothing behind.

    model            checkpoint directory
    bound            [W, S], or null
    prompts          token ids of each request; all are submitted at once
    turns            instead of prompts: chunks of token ids of one streaming session
    max_tokens       tokens to generate after each prompt or chunk
    engine           further engine arguments
    churn            instead of prompts: number of sessions that come and go; see churn.py
    poison           "freed": blocks that no request holds are NaN in every step; "all": all blocks
                     are, but those that the step itself fills

A failed engine answers {"error": class name, "message": ...}.
"""

import copy
import json
import os
import sys
import time

os.environ.update(
    VLLM_CPU_KVCACHE_SPACE="1",
    VLLM_ENABLE_V1_MULTIPROCESSING="0",
    VLLM_LOGGING_LEVEL="ERROR",
    VLLM_CPU_OMP_THREADS_BIND="nobind",
    OMP_NUM_THREADS="1",
    HF_HUB_OFFLINE="1",
)

BLOCK_SIZE_TOKENS = 32
MAX_NUM_BATCHED_TOKENS = 48


def start_engine(job):
    from vllm import LLM

    from harness.vllm_plugin import register
    from harness.vllm_plugin.config import CONFIG_KEY

    register()
    bound = job["bound"]
    arguments = {
        "enforce_eager": True,
        "dtype": "float32",
        "block_size": BLOCK_SIZE_TOKENS,
        "max_num_batched_tokens": MAX_NUM_BATCHED_TOKENS,
        "max_num_seqs": 4,
        "max_model_len": 512,
        "num_gpu_blocks_override": 40,
        "enable_prefix_caching": False,
        "skip_tokenizer_init": True,
        **job.get("engine", {}),
    }
    if bound:
        entry = {"window_tokens": bound[0], "sink_tokens": bound[1]}
        arguments["additional_config"] = {CONFIG_KEY: entry}
    return LLM(model=job["model"], **arguments)


def record_steps(scheduler):
    """Start and length of every chunk a request was computed in, and the blocks it then held."""
    steps = {}
    schedule = scheduler.schedule

    def recorded(*args, **kwargs):
        output = schedule(*args, **kwargs)
        managers = scheduler.kv_cache_manager.coordinator.single_type_managers
        for request_id, num_tokens in output.num_scheduled_tokens.items():
            start = scheduler.requests[request_id].num_computed_tokens - num_tokens
            blocks = managers[0].req_to_blocks[request_id]
            held = sum(not block.is_null for block in blocks)
            steps.setdefault(request_id, []).append([start, num_tokens, held])
        return output

    scheduler.schedule = recorded
    return steps


def poison_blocks(engine_core, extent):
    """Before each step: NaN into blocks that nobody may read, zeros into those newly handed out."""
    scheduler = engine_core.scheduler
    context = engine_core.vllm_config.compilation_config.static_forward_context
    caches = [layer.kv_cache for layer in context.values()]
    num_blocks = scheduler.kv_cache_config.num_blocks
    known = set()
    schedule = scheduler.schedule

    def poisoned(*args, **kwargs):
        output = schedule(*args, **kwargs)
        tables = scheduler.kv_cache_manager.coordinator.single_type_managers[0].req_to_blocks
        held = {b.block_id for blocks in tables.values() for b in blocks if not b.is_null}
        new = held - known
        known.clear()
        known.update(held)
        # Block 0 is vLLM's null block: it stands in every row where a block was freed.
        bad = set(range(num_blocks)) - (new if extent == "all" else held)
        for cache in caches:
            (axis,) = [axis for axis, size in enumerate(cache.shape) if size == num_blocks]
            for ids, value in ((new, 0.0), (bad, float("nan"))):
                cache.index_fill_(axis, torch_ids(ids), value)
        return output

    scheduler.schedule = poisoned


def torch_ids(ids):
    import torch

    return torch.tensor(sorted(ids), dtype=torch.int64)


def logprobs_of(token_ids, alternatives):
    return [d[token].logprob for token, d in zip(token_ids, alternatives, strict=True)]


def generate(llm, job):
    from vllm import SamplingParams, TokensPrompt

    sampling = SamplingParams(
        max_tokens=job["max_tokens"],
        temperature=0.0,
        logprobs=0,
        prompt_logprobs=0,
        ignore_eos=True,
        detokenize=False,
    )
    prompts = [TokensPrompt(prompt_token_ids=ids) for ids in job["prompts"]]
    for output in llm.generate(prompts, sampling, use_tqdm=False):
        answer = output.outputs[0]
        ids = list(output.prompt_token_ids)
        said = list(answer.token_ids)
        logprobs = logprobs_of(ids[1:], output.prompt_logprobs[1:])
        logprobs += logprobs_of(said, answer.logprobs)
        yield {"token_ids": ids + said, "logprobs": logprobs, "request_id": output.request_id}


def converse(llm, job):
    """One streaming session, a chunk at a time: what its cache holds, and the last token said.

    Leans on vllm/v1/engine (0.32): a resumable request pauses after its answer and is continued by
    another request of the same id. Both halves of an in-process engine would share its tokens.
    """
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    engine = llm.llm_engine
    tasks = engine.get_supported_tasks()
    sampling = SamplingParams(
        max_tokens=job["max_tokens"],
        temperature=0.0,
        logprobs=0,
        ignore_eos=True,
        detokenize=False,
        output_kind=RequestOutputKind.DELTA,
    )
    token_ids, positions, logprobs = [], [], []
    for chunk in job["turns"]:
        request = engine.input_processor.process_inputs(
            request_id="call",
            prompt={"prompt_token_ids": list(chunk)},
            params=sampling.clone(),
            supported_tasks=tasks,
            arrival_time=time.time(),
            resumable=True,
        )
        request.external_req_id = "call"
        for_core = copy.copy(request)
        for_core.prompt_token_ids = list(request.prompt_token_ids)
        engine.output_processor.add_request(request, None, None, 0)
        engine.engine_core.add_request(for_core)
        # The last token said before was never computed: vLLM drops it for the chunk.
        for history in (token_ids, positions, logprobs):
            del history[-1:]
        token_ids += chunk
        said = 0
        for _ in range(200):
            for output in engine.step():
                answer = output.outputs[0]
                logprobs += logprobs_of(answer.token_ids, answer.logprobs)
                positions += range(len(token_ids), len(token_ids) + len(answer.token_ids))
                token_ids += answer.token_ids
                said += len(answer.token_ids)
            if said == job["max_tokens"]:
                break
    return {
        "token_ids": token_ids,
        "positions": positions,
        "logprobs": logprobs,
        "request_id": "call",
    }


def run(job):
    from harness.vllm_plugin.self_check import inspect_scheduler

    llm = start_engine(job)
    if "churn" in job:
        from tests.vllm_plugin.churn import Churn

        return Churn(llm.llm_engine, seed=job["seed"]).run(job["churn"])
    scheduler = llm.llm_engine.engine_core.engine_core.scheduler
    report = inspect_scheduler(scheduler)
    steps = record_steps(scheduler)
    if "poison" in job:
        poison_blocks(llm.llm_engine.engine_core.engine_core, job["poison"])
    answers = [converse(llm, job)] if "turns" in job else list(generate(llm, job))
    for answer in answers:
        # vLLM appends a random suffix to the ids that its core sees.
        (key,) = [key for key in steps if key.split("-")[0] == answer["request_id"]]
        answer["steps"] = steps[key]
    layers = llm.llm_engine.vllm_config.compilation_config.static_forward_context
    backends = {name: layer.get_attn_backend().__name__ for name, layer in layers.items()}
    return {"answers": answers, "report": report.as_dict(), "backends": backends}


def answer_in_a_fork(job, replies):
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    try:
        reply = run(job)
    except Exception as error:  # noqa: BLE001  # the reply carries it to the test
        reply = {"error": type(error).__name__, "message": str(error)}
    replies.write(json.dumps(reply) + "\n")
    replies.flush()
    os._exit(0)


def main():
    # vLLM and its libraries print; only replies may reach the real standard output.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import torch
    import vllm.v1.engine.llm_engine
    import vllm.v1.worker.cpu_worker  # noqa: F401

    torch.set_num_threads(1)
    replies.write(json.dumps("ready") + "\n")
    replies.flush()
    for line in sys.stdin:
        answer_in_a_fork(json.loads(line), replies)


if __name__ == "__main__":
    main()
