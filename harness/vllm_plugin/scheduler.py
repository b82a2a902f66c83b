"""The scheduler of a bounded engine: whichever vLLM chose, checked, announced, its host bounded.

vLLM swallows a plugin that fails to load, and a bound that is not in force looks like one that is
until the pool is full. So an engine that was asked for a bound asks its own scheduler, when that is
made, and does not start without it.

Leans on `SchedulerConfig.get_scheduler_cls` (vllm/config/scheduler.py, 0.32), which the engine core
asks for the class to make. The option `scheduler_cls` is the official way to give another class;
it is left to the user, and whatever it names is derived from in turn.
"""

from __future__ import annotations

import functools
from typing import Any

from vllm.config import SchedulerConfig
from vllm.logger import init_logger
from vllm.v1.core.sched.scheduler import Scheduler

from harness.vllm_plugin.config import bounds_host, retention_from
from harness.vllm_plugin.host_bound import HostBound
from harness.vllm_plugin.self_check import inspect_scheduler

# vLLM's logging reaches names below its own.
logger = init_logger("vllm.metronome")


class Announced:
    """Mixin over a vLLM scheduler: one line at start-up says what is in force.

    Raises: EngineError if the bound that was asked for is not.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        logger.info("%s", inspect_scheduler(self).sentence())


def install_scheduler() -> None:
    """Derive the scheduler of engines that ask for a bound; calling it again changes nothing."""
    original = SchedulerConfig.get_scheduler_cls
    if hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def get_scheduler_cls(config: SchedulerConfig) -> type:
        return bounded_scheduler(original(config))

    SchedulerConfig.get_scheduler_cls = get_scheduler_cls


@functools.lru_cache
def bounded_scheduler(chosen: type) -> type:
    """Return a class that makes `chosen`, or for an engine with a bound what is derived from it.

    A class that bounds its host already, or is no `Scheduler` of vLLM's, is returned as it is.
    """
    if issubclass(chosen, HostBound) or not issubclass(chosen, Scheduler):
        return chosen

    def make(cls: type, *args: Any, **kwargs: Any) -> Any:
        additional_config = kwargs["vllm_config"].additional_config
        if retention_from(additional_config) or bounds_host(additional_config):
            return object.__new__(cls)
        # No instance of cls, so that Python leaves it as it was made.
        return chosen(*args, **kwargs)

    bases = (Announced, HostBound, chosen)
    return type(f"Bounded{chosen.__name__}", bases, {"__new__": make, "__module__": __name__})
