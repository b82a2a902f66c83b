"""Imported once by the fork server, so that each run's process starts with vLLM already loaded.

Importing sets vLLM's environment first; nothing else in the project imports this module.
"""

import logging
import os

from harness.engines.vllm_args import prepare_environment

prepare_environment()
# vLLM warns about Triton before it has read its own logging level.
logging.getLogger("vllm").setLevel(os.environ["VLLM_LOGGING_LEVEL"])

import vllm.model_executor.models.qwen2_5_omni_thinker  # noqa: E402
import vllm.v1.engine.async_llm  # noqa: E402
import vllm.v1.engine.core  # noqa: E402
import vllm.v1.executor.uniproc_executor  # noqa: E402, F401

import harness.engines.observed_scheduler  # noqa: E402
import harness.experiments.live_run  # noqa: E402, F401
