"""Imported once by the fork server, so that a simulated run starts with vLLM's scheduler loaded.

Importing sets vLLM's environment first; nothing else in the project imports this module.
"""

import logging
import os

from harness.engines.vllm_args import prepare_environment

prepare_environment()
# vLLM warns about Triton before it has read its own logging level.
logging.getLogger("vllm").setLevel(os.environ["VLLM_LOGGING_LEVEL"])

import harness.engines.sim_core  # noqa: E402
import harness.engines.simulated  # noqa: E402
import harness.experiments.live_run  # noqa: E402, F401
from harness.engines.sim_args import warm_up  # noqa: E402

warm_up()
