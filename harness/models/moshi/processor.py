"""One frame as vLLM takes it: a placeholder token with one multimodal item, 17 ids.

The codec runs on the client, so nothing is left to process here. vLLM still asks every multimodal
model for a processor, and uses it to measure a batch of the largest items.
Leans on vllm/multimodal/processing (0.32) and `mm_input` of vllm/inputs/engine.py, which passes a
prompt by the renderer and its hashing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from transformers import BatchFeature
from vllm.inputs.engine import mm_input
from vllm.multimodal.inputs import (
    MultiModalFieldConfig,
    MultiModalKwargsItems,
    PlaceholderRange,
)
from vllm.multimodal.processing import (
    BaseDummyInputsBuilder,
    BaseMultiModalProcessor,
    BaseProcessingInfo,
)

from harness.core.errors import EngineError

FIELD = "frame_ids"
_MODALITY = "audio"
_PLACEHOLDER_ID = 0


def frame_input(ids: Sequence[int], unique_id: str) -> Any:
    """The prompt that extends a call by one frame.

    ids: of all streams, as TokenStreams.next_input gives them.
    unique_id: of this frame in this engine: vLLM's encoder cache takes equal ones for equal.
    """
    items = MultiModalKwargsItems.from_hf_inputs(
        BatchFeature({FIELD: torch.tensor([ids])}), _fields()
    )
    places = [PlaceholderRange(offset=0, length=1)]
    return mm_input([_PLACEHOLDER_ID], items, {_MODALITY: [unique_id]}, {_MODALITY: places})


def _fields() -> Mapping[str, MultiModalFieldConfig]:
    return {FIELD: MultiModalFieldConfig.batched(_MODALITY)}


class MoshiProcessingInfo(BaseProcessingInfo):  # type: ignore[misc]  # vLLM is untyped for mypy
    """A chunk holds one frame, and a frame one position."""

    @property
    def num_streams(self) -> int:
        """Ids of a frame."""
        return 1 + 2 * int(self.get_hf_config().num_codebooks)

    def get_supported_mm_limits(self) -> Mapping[str, int | None]:
        """One frame a chunk."""
        return {_MODALITY: 1}

    def get_mm_max_tokens_per_item(
        self, seq_len: int, mm_counts: Mapping[str, int]
    ) -> Mapping[str, int]:
        """One position a frame."""
        return {_MODALITY: 1}


class MoshiDummyInputs(BaseDummyInputsBuilder[MoshiProcessingInfo]):  # type: ignore[misc]
    """Frames of zeros, for vLLM's measuring run."""

    def get_dummy_text(self, mm_counts: Mapping[str, int]) -> str:
        """There is no tokenizer."""
        return ""

    def get_dummy_mm_data(
        self, seq_len: int, mm_counts: Mapping[str, int], mm_options: Any
    ) -> dict[str, Any]:
        """Audio stands for ids: as many samples as there are streams."""
        num_frames = mm_counts.get(_MODALITY, 0)
        return {
            _MODALITY: self._get_dummy_audios(length=self.info.num_streams, num_audios=num_frames)
        }


class MoshiProcessor(BaseMultiModalProcessor[MoshiProcessingInfo]):  # type: ignore[misc]
    """Serves vLLM's measuring run; calls bring their frames rendered (`frame_input`)."""

    requires_tokenizer = False

    def apply(self, inputs: Any, timing_ctx: Any) -> Any:
        """Turn a dummy frame into what `frame_input` makes of a real one.

        Raises: EngineError for raw audio, which only the client's codec can turn into codes.
        """
        frames = inputs.mm_data_items.get(_MODALITY)
        if not frames:
            return mm_input(list(inputs.prompt), MultiModalKwargsItems(), {}, {})
        ids = [int(value) for value in frames.get(0)]
        if len(ids) != self.info.num_streams:
            raise EngineError(
                "Moshi takes codes, not audio: build prompts with harness.models.front_ends.moshi"
            )
        return frame_input(ids, "dummy")

    def _get_mm_fields_config(
        self, hf_inputs: Any, hf_processor_mm_kwargs: Mapping[str, object]
    ) -> Mapping[str, MultiModalFieldConfig]:
        return _fields()

    def _get_prompt_updates(self, *args: Any, **kwargs: Any) -> Sequence[Any]:
        return []
