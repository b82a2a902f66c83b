"""Qwen2.5-Omni: every frame is one audio item between its begin and end tokens.

Source: vllm/model_executor/models/qwen2_5_omni_thinker.py and transformers' Qwen2_5OmniProcessor.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.models.catalog import ModelSpec


class Qwen25OmniFrontEnd:
    """Stateless: vLLM's own processor turns the audio into features and placeholders."""

    def __init__(self, model: ModelSpec, checkpoint: Path) -> None:
        self._sample_rate_hz = model.sample_rate_hz
        self._frame_samples = round(model.frame_budget_s * model.sample_rate_hz)

    @property
    def engine_args(self) -> dict[str, Any]:
        """Audio only, and the feature extractor pads to one frame instead of to 300 s."""
        return {
            "limit_mm_per_prompt": {"audio": 1, "image": 0, "video": 0},
            "mm_processor_kwargs": {"audio_kwargs": {"max_length": self._frame_samples}},
        }

    @property
    def sampling_args(self) -> dict[str, Any]:
        """Nothing beyond the length."""
        return {}

    def open_session(self, session_id: int) -> Qwen25OmniFrontEnd:
        """All calls share the front end."""
        return self

    def prompt(self, index: int, audio: npt.NDArray[np.float32]) -> Any:
        """One audio item; vLLM replaces the placeholder by 25 tokens a second."""
        return {
            "prompt": "<|audio_bos|><|AUDIO|><|audio_eos|>",
            "multi_modal_data": {"audio": [(audio, self._sample_rate_hz)]},
        }

    def receive(self, completion: Any) -> None:
        """Text tokens of random weights: nothing to keep."""
