"""vLLM's MiniCPM-o-4.5 with input processing that knows audio alone.

Leans on vllm/model_executor/models/minicpmo.py and vllm/transformers_utils/processors/minicpmo.py
(0.32). Deviates from them where they need an image processor, and in padding: theirs pads every
chunk to the feature extractor's 30 s, this one not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from transformers import ProcessorMixin, WhisperFeatureExtractor
from vllm.model_executor.models.minicpmo import (
    MiniCPMO4_5,
    MiniCPMODummyInputsBuilder,
    MiniCPMOMultiModalProcessor,
    MiniCPMOProcessingInfo,
)
from vllm.multimodal import MULTIMODAL_REGISTRY
from vllm.transformers_utils.processors.minicpmo import MiniCPMOProcessor


class UnpaddedFeatureExtractor(WhisperFeatureExtractor):  # type: ignore[misc]
    """Whisper's log-mel features of the audio that is there: nothing padded, nothing cut off."""

    def __call__(self, raw_speech: Any, **kwargs: Any) -> Any:
        """Features (num_audios, num_mel_bins, longest audio in frames of 10 ms)."""
        return super().__call__(raw_speech, **{**kwargs, "padding": "longest", "truncation": False})


class AudioProcessor(MiniCPMOProcessor):  # type: ignore[misc]
    """vLLM's MiniCPMOProcessor without an image processor."""

    def __init__(self, feature_extractor: Any, tokenizer: Any, *, pool_step: int) -> None:
        # Not the parent's, which hands over three parts.
        ProcessorMixin.__init__(self, feature_extractor=feature_extractor, tokenizer=tokenizer)
        self.pool_step = pool_step

    @classmethod
    def get_attributes(cls) -> list[str]:
        """The parts that transformers checks and saves."""
        return ["feature_extractor", "tokenizer"]


class AudioProcessingInfo(MiniCPMOProcessingInfo):  # type: ignore[misc]
    """What vLLM asks about inputs before there are any."""

    @cached_property
    def _processor(self) -> AudioProcessor:
        model = self.ctx.model_config
        return AudioProcessor(
            UnpaddedFeatureExtractor.from_pretrained(model.model, revision=model.revision),
            self.get_tokenizer(),
            pool_step=self.get_default_audio_pool_step(),
        )

    def get_hf_processor(self, **kwargs: object) -> AudioProcessor:
        """The same one each time: asked for several times a frame."""
        return self._processor

    def get_supported_mm_limits(self) -> Mapping[str, int | None]:
        """Audio, without a limit."""
        return {"audio": None}

    def get_mm_max_tokens_per_item(
        self, seq_len: int, mm_counts: Mapping[str, int]
    ) -> Mapping[str, int]:
        """Tokens of the longest audio: 30 s."""
        return {"audio": self.get_max_audio_tokens()}


class AudioDummyInputsBuilder(MiniCPMODummyInputsBuilder):  # type: ignore[misc]
    """Inputs of the largest size, for profiling."""

    def get_dummy_mm_data(
        self, seq_len: int, mm_counts: Mapping[str, int], mm_options: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Silence of 30 s."""
        length = (
            self.info.get_max_audio_chunks_with_most_features()
            * self.info.get_default_audio_sampling_rate()
        )
        audios = self._get_dummy_audios(
            length=length,
            num_audios=mm_counts.get("audio", 0),
            overrides=mm_options.get("audio"),
        )
        return {"audio": audios}


@MULTIMODAL_REGISTRY.register_processor(
    MiniCPMOMultiModalProcessor, info=AudioProcessingInfo, dummy_inputs=AudioDummyInputsBuilder
)
class MiniCPMOAudio(MiniCPMO4_5):  # type: ignore[misc]
    """MiniCPM-o-4.5: Whisper encoder and Qwen3 backbone.

    Its vision tower stays unloaded if `limit_mm_per_prompt` has no image and no video.
    """
