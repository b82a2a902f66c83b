"""What plain transformers says of a call: one forward over the whole history, in float32.

A session's history is every frame's text and audio, and every answer without its last token, which
vLLM samples but never computes. A reference has no streaming, no cache and no vLLM in it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file
from transformers import (
    AutoConfig,
    AutoTokenizer,
    Qwen2_5OmniThinkerForConditionalGeneration,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3OmniMoeThinkerForConditionalGeneration,
    WhisperConfig,
    WhisperFeatureExtractor,
)
from transformers.models.whisper.modeling_whisper import WhisperEncoder

Audio = npt.NDArray[np.float32]
Answers = Sequence[Sequence[int]]


class Reference:
    """A family's modules and the layout of its frames.

    begin, audio, end: ids around and of the audio. tokens_per_frame: of the audio alone.
    """

    def __init__(self, begin: int, audio: int, end: int, tokens_per_frame: int) -> None:
        self._frame = [begin, *[audio] * tokens_per_frame, end]
        self._audio = audio

    def logits(
        self, ids: torch.Tensor, is_audio: torch.Tensor, audios: Sequence[Audio], positions: Any
    ) -> torch.Tensor:
        """(num_tokens, vocabulary); positions: (num_tokens,), or None for the model's own."""
        raise NotImplementedError

    def logprobs(
        self, answers: Answers, audios: Sequence[Audio], *, late_by: int = 0
    ) -> torch.Tensor:
        """Of every token at every place of the answers: (num_frames, answer_length, vocabulary).

        late_by: shift of all positions after the first frame's; 0 leaves them to the model.
        """
        history: list[int] = []
        places = []
        for answer in answers:
            # The last answer's last token was never computed.
            history = history[:-1] if places else history
            history += self._frame
            places.append((len(history), len(history) + len(answer)))
            history += answer
        ids = torch.tensor(history)
        positions = None
        if late_by:
            positions = torch.arange(len(ids))
            positions[places[0][1] - 1 :] += late_by
        with torch.no_grad():
            logits = self.logits(ids, ids == self._audio, audios, positions)
        table = torch.log_softmax(logits, dim=-1)
        # What is said at a place was foretold one place before.
        return torch.stack([table[start - 1 : stop - 1] for start, stop in places])


class QwenOmni(Reference):
    """The thinker of Qwen2.5-Omni or Qwen3-Omni, loaded as a published checkpoint would be."""

    def __init__(self, model: type, checkpoint: Path, tokens_per_frame: int) -> None:
        tokenizer = AutoTokenizer.from_pretrained(checkpoint)
        names = ("audio_bos_token", "audio_token", "audio_eos_token")
        ids = [tokenizer.convert_tokens_to_ids(getattr(tokenizer, name)) for name in names]
        super().__init__(*ids, tokens_per_frame)
        config = AutoConfig.from_pretrained(checkpoint).thinker_config
        self._thinker, found = model.from_pretrained(
            checkpoint, config=config, dtype=torch.float32, output_loading_info=True
        )
        assert not any(found.values()), found
        self._mel = WhisperFeatureExtractor(
            **json.loads((checkpoint / "processor_config.json").read_text())["feature_extractor"]
        )

    def logits(
        self, ids: torch.Tensor, is_audio: torch.Tensor, audios: Sequence[Audio], positions: Any
    ) -> torch.Tensor:
        mel = self._mel(
            list(audios), sampling_rate=16_000, padding="longest", return_tensors="pt"
        ).input_features
        return self._thinker(
            input_ids=ids[None],
            attention_mask=torch.ones_like(ids)[None],
            input_features=mel,
            feature_attention_mask=torch.ones(mel.shape[0], mel.shape[2], dtype=torch.long),
            position_ids=None if positions is None else positions.expand(3, 1, -1),
        ).logits[0]


class MiniCPMO(Reference):
    """MiniCPM-o-4.5 put together from transformers' Whisper encoder and Qwen3."""

    def __init__(self, checkpoint: Path, tokens_per_frame: int) -> None:
        tokenizer = AutoTokenizer.from_pretrained(checkpoint)
        super().__init__(
            tokenizer.audio_start_id,
            tokenizer.unk_token_id,
            tokenizer.audio_end_id,
            tokens_per_frame,
        )
        config = json.loads((checkpoint / "config.json").read_text())
        self._pool_step = config["audio_pool_step"]
        weights = load_file(checkpoint / "model.safetensors")
        self._weights = {name: tensor.float() for name, tensor in weights.items()}
        self._mel = WhisperFeatureExtractor.from_pretrained(checkpoint)
        # One second of audio is 50 encoder positions, and transformers wants exactly so many.
        whisper = WhisperConfig(**config["audio_config"] | {"max_source_positions": 50})
        self._encoder = WhisperEncoder(whisper).eval()
        encoder = self._part("apm")
        encoder["embed_positions.weight"] = encoder["embed_positions.weight"][:50]
        self._encoder.load_state_dict(encoder)
        self._backbone = Qwen3ForCausalLM(Qwen3Config(**config | {"model_type": "qwen3"})).eval()
        self._backbone.load_state_dict(self._part("llm"))

    def _part(self, prefix: str) -> dict[str, torch.Tensor]:
        return {
            name.removeprefix(f"{prefix}."): tensor
            for name, tensor in self._weights.items()
            if name.startswith(f"{prefix}.")
        }

    def _linear(self, hidden: torch.Tensor, name: str) -> torch.Tensor:
        part = self._part(f"audio_projection_layer.{name}")
        return torch.nn.functional.linear(hidden, part["weight"], part["bias"])

    def logits(
        self, ids: torch.Tensor, is_audio: torch.Tensor, audios: Sequence[Audio], positions: Any
    ) -> torch.Tensor:
        mel = self._mel(
            list(audios), sampling_rate=16_000, padding="longest", return_tensors="pt"
        ).input_features
        hidden = self._encoder(mel).last_hidden_state
        hidden = self._linear(torch.relu(self._linear(hidden, "linear1")), "linear2")
        pooled = torch.nn.functional.avg_pool1d(hidden.transpose(1, 2), self._pool_step)
        embeddings = self._backbone.get_input_embeddings()(ids)
        embeddings[is_audio] = pooled.transpose(1, 2).flatten(0, 1)
        return self._backbone(
            inputs_embeds=embeddings[None],
            position_ids=None if positions is None else positions[None],
        ).logits[0]


def reference(model_name: str, checkpoint: Path, tokens_per_frame: int) -> Reference:
    """The reference of a model; tokens_per_frame: of the audio alone."""
    if model_name == "minicpm_o":
        return MiniCPMO(checkpoint, tokens_per_frame)
    model = {
        "qwen2_5_omni": Qwen2_5OmniThinkerForConditionalGeneration,
        "qwen3_omni": Qwen3OmniMoeThinkerForConditionalGeneration,
    }[model_name]
    return QwenOmni(model, checkpoint, tokens_per_frame)
