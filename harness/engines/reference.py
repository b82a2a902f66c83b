"""The same weights in float32 under an explicit mask, by plain transformers: no vLLM, no blocks.

A query sees exactly the first S tokens, where the live engine pins whole blocks, and the same
window as there: the one that its frame began with, in whole blocks. So S may be below a block here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.config import RunConfig
from harness.core.errors import EngineError
from harness.engines.scoring import Logprobs
from harness.kv.retention import Retention, first_window_block
from harness.models.probe import probe_checkpoint

Mask = npt.NDArray[np.bool_]


def frame_mask(
    num_tokens: int, frame_tokens: int, retention: Retention, block_size_tokens: int
) -> Mask:
    """What each query sees, (query, key), if the sinks are exactly S tokens.

    Example: W=4, S=1, frames and blocks of 2, query 7 of the frame from 6 -> keys 0 and 2..7.
    """
    positions = np.arange(num_tokens)
    starts = positions // frame_tokens * frame_tokens
    begins = np.array([first_window_block(int(s), retention, block_size_tokens) for s in starts])
    key, query = positions[None, :], positions[:, None]
    recent = key >= (begins * block_size_tokens)[:, None]
    mask: Mask = (key <= query) & (recent | (key < retention.sink_tokens))
    return mask


class ReferenceScorer:
    """Scores one text at a time, each in one forward pass."""

    def __init__(self, run: RunConfig, cache: Path) -> None:
        self._run = run
        self._cache = cache
        self._model: Any = None
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        """Load the weights. Raises: ConfigError if they were not fetched."""
        import torch
        from transformers import AutoModelForCausalLM

        self._model = AutoModelForCausalLM.from_pretrained(
            str(probe_checkpoint(self._run.model, self._cache)),
            dtype=torch.float32,
            attn_implementation="sdpa",
        ).eval()

    async def score(self, session_id: int, token_ids: Sequence[int]) -> AsyncIterator[Logprobs]:
        """Log-probability of each token after the first, nats, all at once."""
        if self._model is None:
            raise EngineError("the reference is not loaded: start() was not called")
        async with self._turn:
            yield await asyncio.to_thread(self._forward, list(token_ids))

    def _forward(self, token_ids: list[int]) -> Logprobs:
        import torch

        run = self._run
        visible = frame_mask(
            len(token_ids),
            run.model.prompt_tokens_per_frame,
            run.retention,
            run.engine.block_size_tokens,
        )
        ids = torch.tensor([token_ids])
        mask = torch.from_numpy(visible)[None, None]
        with torch.no_grad():
            hidden = self._model.model(ids, attention_mask=mask).last_hidden_state[0, :-1]
            found = [
                torch.log_softmax(self._model.lm_head(part), dim=-1).gather(1, wanted[:, None])
                for part, wanted in zip(hidden.split(256), ids[0, 1:].split(256), strict=True)
            ]
        logprobs: Logprobs = torch.cat(found)[:, 0].double().numpy()
        return logprobs

    async def attention_mass(
        self, token_ids: Sequence[int], first: Sequence[int]
    ) -> npt.NDArray[np.float64]:
        """Share of attention on the first tokens of a text under the full mask, (layer, first).

        Mean over heads and over the queries of the text's second half.
        Example: first=(1, 4) -> for each layer, the share on token 0, and on tokens 0 to 3.
        """
        if self._model is None:
            raise EngineError("the reference is not loaded: start() was not called")
        return await asyncio.to_thread(self._attend, list(token_ids), first)

    def _attend(self, token_ids: list[int], first: Sequence[int]) -> npt.NDArray[np.float64]:
        import torch

        self._model.set_attn_implementation("eager")
        try:
            with torch.no_grad():
                layers = self._model.model(
                    torch.tensor([token_ids]), output_attentions=True
                ).attentions
        finally:
            self._model.set_attn_implementation("sdpa")
        half = len(token_ids) // 2
        per_layer = [layer[0, :, half:].mean((0, 1)).cumsum(0) for layer in layers]
        shares = [[float(mass[count - 1]) for count in first] for mass in per_layer]
        return np.asarray(shares, dtype=np.float64)

    async def stop(self) -> None:
        """Nothing outlives the process."""
        self._model = None
