"""Kyutai's Moshi as an out-of-tree vLLM model: one KV position for each 80 ms frame.

    config       sizes; the defaults are Moshi 7B's
    streams      which of 17 token streams a step reads, and what it leaves behind
    processor    one frame's 17 ids as one multimodal item behind one placeholder token
    temporal     the transformer over frames, made of vLLM's layers
    depth        the transformer over the codebooks of one frame
    answers      a text id and 8 codes packed into the logits that vLLM samples from
    weights      Kyutai's parameter names
    model        the class that vLLM loads
    codec        Mimi on the client: speech to codes, codes to speech

Written from the paper and from the observable behaviour of Kyutai's package `moshi` 0.2.13, to
which tests/models/test_moshi_live.py compares every id; none of its code is here.
Source: Moshi (arXiv 2410.00037), 3.4.
"""


def register() -> None:
    """Make configuration and model known in this process; calling it again changes nothing."""
    from transformers import AutoConfig
    from vllm import ModelRegistry

    from harness.models.moshi.config import ARCHITECTURE, MODEL_TYPE, MoshiConfig

    AutoConfig.register(MODEL_TYPE, MoshiConfig, exist_ok=True)
    ModelRegistry.register_model(ARCHITECTURE, f"{__name__}.model:{ARCHITECTURE}")
