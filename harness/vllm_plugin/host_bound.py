"""What a call's age costs the host: past features lose their tensors once, not at every frame.

A bounded KV cache does not bound the host. vLLM keeps every multimodal feature that a streaming
session was ever given. With each new chunk it sends all of them to the worker again, after making a
copy of each past one without its tensors (`strip_covered_mm_data`): 8 us apiece, and as many new
objects for the garbage collector to walk. Here a feature is stripped once, when it is covered, in
the session's own list, and that list is what is sent. The worker sees the same as before.

The tensors go on a shelf (shelf.py), since a preempted session is computed again from its features:
out of memory, and out of the garbage collector's way. Nor does that walk what the first session, a
warm-up, leaves behind: vLLM freezes its heap when it has started, but the first answer still
imports and compiles, and a collection of that takes 0.1 to 0.5 s, in mid-call.

On by default with the bound on the cache (scheduler.py mixes it in);
`additional_config={"metronome_host_bound": False}` or `True` decides otherwise.
Leans on vLLM 0.32: `_update_request_as_session` of v1/core/sched/scheduler.py, through which every
chunk but the first joins its session, `_preempt_request`, `_free_request`, and the name
`strip_covered_mm_data` in v1/core/sched/output.py. That function is wrapped, for lists made here
only: no seam leads past it.
M-RoPE positions have the same fault, in the worker: see positions.py.
Limit: token ids are still sent whole, 20 ns apiece.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
from typing import Any

from vllm.multimodal.inputs import MultiModalKwargsItem
from vllm.multimodal.utils import strip_covered_mm_data
from vllm.v1.core.sched import output as scheduler_output
from vllm.v1.serial_utils import MsgpackDecoder, MsgpackEncoder

from harness.core.errors import ConfigError
from harness.vllm_plugin.config import HOST_KEY, bounds_host
from harness.vllm_plugin.shelf import Shelf

_WRAPPED = "strip_covered_mm_data"
# vLLM's own encoding of such data between its processes; never with buffers apart from the message.
_ENCODER = MsgpackEncoder(size_threshold=2**62)
_DECODER = MsgpackDecoder(MultiModalKwargsItem)


class SessionFeatures(list[Any]):
    """A session's features in order; the first `len(shelf)` are stripped, their data on the shelf.

    Sent to the worker as it is: where that lives in the scheduler's process, both hold this list.
    """

    def __init__(self, features: list[Any]) -> None:
        super().__init__(features)
        self.shelf = Shelf()

    def __reduce__(self) -> Any:
        """To another process goes a plain list."""
        return list, (list(self),)

    def put_away(self, num_computed_tokens: int, *, uses_mrope: bool) -> None:
        """Strip what is covered by now: no encoder will ask for its data again."""
        first = last = len(self.shelf)
        while last < len(self) and _is_covered(self[last], num_computed_tokens):
            data = self[last].data
            self.shelf.put(None if data is None else bytes(_ENCODER.encode(data)[0]))
            last += 1
        self[first:last] = strip_covered_mm_data(
            self[first:last], num_computed_tokens, uses_mrope=uses_mrope
        )

    def bring_back(self) -> None:
        """Give every feature its data again: the session will be computed from the start."""
        for index, entry in enumerate(self.shelf.take_all()):
            data = None if entry is None else _DECODER.decode(entry)
            self[index] = dataclasses.replace(self[index], data=data)


class HostBound:
    """Mixin over a vLLM scheduler.

    Raises: ConfigError if the key is not a boolean, or with a KV connector, which can take computed
    tokens back without a preemption.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        config = self.vllm_config  # type: ignore[attr-defined]
        self._bounds_host = bounds_host(config.additional_config)
        if self._bounds_host and config.kv_transfer_config is not None:
            raise ConfigError(
                f"additional_config.{HOST_KEY} cannot be kept with a KV connector: set it to False"
            )
        self._is_warm = False
        if self._bounds_host:
            _install_wrapper()

    def _update_request_as_session(self, session: Any, update: Any) -> None:
        super()._update_request_as_session(session, update)  # type: ignore[misc]
        if self._bounds_host and session.mm_features:
            if not isinstance(session.mm_features, SessionFeatures):
                session.mm_features = SessionFeatures(session.mm_features)
            session.mm_features.put_away(
                session.num_computed_tokens,
                uses_mrope=self.model_uses_mrope,  # type: ignore[attr-defined]
            )

    def _preempt_request(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(request.mm_features, SessionFeatures):
            request.mm_features.bring_back()
        return super()._preempt_request(request, *args, **kwargs)  # type: ignore[misc]

    def _free_request(self, *args: Any, **kwargs: Any) -> Any:
        freed = super()._free_request(*args, **kwargs)  # type: ignore[misc]
        if self._bounds_host and not self._is_warm:
            self._is_warm = True
            gc.freeze()
        return freed


def _is_covered(feature: Any, num_computed_tokens: int) -> bool:
    position = feature.mm_position
    return bool(position.offset + position.length <= num_computed_tokens)


def _install_wrapper() -> None:
    """Send lists that are stripped already as they are; calling it again changes nothing."""
    original = getattr(scheduler_output, _WRAPPED)
    if hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def strip(features: list[Any], num_computed_tokens: int, uses_mrope: bool = False) -> Any:
        if isinstance(features, SessionFeatures):
            features.put_away(num_computed_tokens, uses_mrope=uses_mrope)
            return features
        return original(features, num_computed_tokens, uses_mrope)

    setattr(scheduler_output, _WRAPPED, strip)
