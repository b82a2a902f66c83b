"""Configuration of MiniCPM-o checkpoints made by this project; a published one brings its own.

A model type of its own, so that published checkpoints keep their class.
"""

from __future__ import annotations

from typing import Any

from transformers import Qwen3Config, WhisperConfig
from transformers.models.idefics2.configuration_idefics2 import Idefics2VisionConfig


class MiniCPMOAudioConfig(Qwen3Config):  # type: ignore[misc]  # transformers is untyped for mypy
    """Qwen3's fields, with those of the audio encoder and of the vision tower nested.

    version: 4.5 is the one with a Qwen3 backbone.
    audio_pool_step: encoder positions (20 ms each) averaged into one token.
    audio_chunk_length: seconds of audio that attend to each other in the encoder, which a chunk
    leaves only backwards.
    query_num: tokens of an image.
    """

    model_type = "minicpmo_audio"
    sub_configs = {"audio_config": WhisperConfig, "vision_config": Idefics2VisionConfig}  # noqa: RUF012

    audio_config: Any = None
    vision_config: Any = None
    version: str = "4.5"
    audio_pool_step: int = 5
    audio_chunk_length: float = 1.0
    query_num: int = 64
    drop_vision_last_layer: bool = False

    def __post_init__(self, **kwargs: Any) -> None:
        for name, kind in self.sub_configs.items():
            value = getattr(self, name)
            if not isinstance(value, kind):
                setattr(self, name, kind(**(value or {})))
        super().__post_init__(**kwargs)
