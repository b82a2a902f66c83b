"""Log-probabilities of the prompt for every chunk of a streaming session, not only its first.

vLLM notes what `prompt_logprobs` a request asks for when it first sees the request, and forgets it
once that prompt is computed; a chunk that extends the session is not noted again; here it is.
Scheduling, cache and attention stay those of any streaming session.

The answer to a chunk then carries one entry for each token of the session but the first. Only those
of the chunk's own tokens, except its first, are filled in: what came before is not computed again,
and the first was predicted by the chunk before. Ask for that one with `logprob_token_ids`.

One method is wrapped, `_update_streaming_request` of vllm/v1/worker/gpu_model_runner.py (0.32), in
every process that the plugin is registered in while METRONOME_SCORE_CHUNKS is set.
"""

from __future__ import annotations

import functools
from typing import Any

from vllm.v1.worker.gpu_model_runner import GPUModelRunner

_WRAPPED = "_update_streaming_request"


def install_chunk_logprobs() -> None:
    """Score the chunks of streaming sessions; calling it again changes nothing."""
    original = getattr(GPUModelRunner, _WRAPPED)
    if hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def update(runner: Any, req_id: str, new_req_data: Any) -> Any:
        state = original(runner, req_id, new_req_data)
        sampling = new_req_data.sampling_params
        if sampling is not None and sampling.prompt_logprobs is not None:
            runner.num_prompt_logprobs[req_id] = sampling.prompt_logprobs
        return state

    setattr(GPUModelRunner, _WRAPPED, update)
