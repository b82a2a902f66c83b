"""A bound on every session's KV cache, for stock vLLM 0.32: the first S and the last W tokens.

Install the package and start the engine with
`additional_config={"metronome": {"window_tokens": W, "sink_tokens": S}}`; docs/bound.md tells more.
Without that key nothing changes.

    config       the key, read and validated
    refusals     engine settings under which the bound would be wrong
    layers       the hook: gives full-attention layers the bounded cache spec and backend
    spec         the cache spec and its block manager: what is freed
    backend      the attention backend whose metadata skips what was freed
    compaction   the tensor arithmetic of that
    scheduler    checks and announces the bound when an engine starts, and bounds its host
    chunk_logprobs  log-probabilities of every chunk of a session, if the environment asks for them
    self_check   what an engine really keeps, read from its own objects
    host_bound   a session's features, stripped once and not at every frame
    shelf        where what was stripped lies, out of memory
    positions    a session's M-RoPE positions, counted on and not worked out at every frame
"""

import os

# Set in the environment of an engine whose sessions' chunks are to be scored.
SCORE_CHUNKS = "METRONOME_SCORE_CHUNKS"


def register() -> None:
    """Make the bound available in this process; vLLM calls this in each of its processes.

    Entry point of the group `vllm.general_plugins`; calling it again changes nothing.
    """
    from harness.vllm_plugin.layers import install_hook
    from harness.vllm_plugin.refusals import installed_vllm_is_supported

    install_hook()
    if installed_vllm_is_supported():
        from harness.vllm_plugin.scheduler import install_scheduler
        from harness.vllm_plugin.spec import register_spec

        register_spec()
        install_scheduler()
        if os.environ.get(SCORE_CHUNKS):
            from harness.vllm_plugin.chunk_logprobs import install_chunk_logprobs

            install_chunk_logprobs()
