"""M-RoPE positions of a session of text and audio: counted on, not worked out from the start.

With each chunk vLLM works out the positions of the session's whole history anew, feature by feature
(`_init_mrope_positions`): work that grows with the session's age. As long as a session holds only
text and audio, its positions are 0, 1, 2, ... in all three rows. Whether this model counts so is
read off its own answer to the session's first chunk; after that the count goes on, and a feature of
any other kind ends it.

Leans on `GPUModelRunner._init_mrope_positions` (vllm/v1/worker/gpu_model_runner.py, 0.32; the CPU's
runner inherits it), which is wrapped: it has no seam. The second model runner (v1/worker/gpu/) is
left alone.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor
from vllm.v1.worker.gpu_model_runner import GPUModelRunner

from harness.vllm_plugin.config import bounds_host

_NUM_ROWS = 3
# On a request's state: features seen while its positions were a plain count; NOT_COUNTING if they
# are none.
_MARK = "metronome_counted_features"
NOT_COUNTING = -1


def install_positions() -> None:
    """Wrap `_init_mrope_positions` of vLLM's model runner; calling it again changes nothing."""
    original = GPUModelRunner._init_mrope_positions
    if hasattr(original, "__wrapped__"):
        return
    count = Count()

    @functools.wraps(original)
    def init_mrope_positions(runner: Any, request: Any) -> None:
        if not bounds_host(runner.vllm_config.additional_config):
            original(runner, request)
        elif not count.go_on(request):
            original(runner, request)
            count.begin(request)

    GPUModelRunner._init_mrope_positions = init_mrope_positions


class Count:
    """0, 1, 2, ... in three rows, as long as the longest session."""

    def __init__(self) -> None:
        self._table = torch.zeros(_NUM_ROWS, 0, dtype=torch.int64)

    def begin(self, request: Any) -> None:
        """Note whether the positions that the model gave a request are a plain count."""
        given = request.mrope_positions
        is_count = (
            request.mrope_position_delta == 0
            and _are_audio(request, 0)
            and given.shape[0] == _NUM_ROWS
            and torch.equal(given, self.first(given.shape[1]))
        )
        setattr(request, _MARK, len(request.mm_features) if is_count else NOT_COUNTING)

    def go_on(self, request: Any) -> bool:
        """Count on over a request's new chunk; False if its positions have to be worked out."""
        seen = getattr(request, _MARK, NOT_COUNTING)
        if seen == NOT_COUNTING or not _are_audio(request, seen):
            return False
        request.mrope_positions = self.first(request.num_prompt_tokens)
        request.mrope_position_delta = 0
        setattr(request, _MARK, len(request.mm_features))
        return True

    def first(self, num_tokens: int) -> Tensor:
        """Return the first positions, (3, num_tokens); a view that is only read."""
        if self._table.shape[1] < num_tokens:
            self._table = torch.arange(2 * num_tokens).repeat(_NUM_ROWS, 1)
        return self._table[:, :num_tokens]


def _are_audio(request: Any, first: int) -> bool:
    """Tell whether a request's features from number `first` on are all audio."""
    if request.prompt_embeds is not None:
        return False
    features = request.mm_features
    return all(features[index].modality == "audio" for index in range(first, len(features)))
