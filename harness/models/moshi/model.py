"""The class that vLLM loads: 17 ids in, one text id and 8 codes out, one KV position a frame.

    17 ids -> summed embeddings -> temporal transformer -> text id -> depth transformer -> 8 codes
                                   (paged KV cache)

Text id and codes leave together, as the leading ids of one row of logits.
The sampled text id is never computed: the next frame's item brings it back in, with the codes, so
a frame of one placeholder and one answer adds exactly one position.
Leans on vLLM 0.32's `SupportsMultiModal`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor, nn
from vllm.config import VllmConfig
from vllm.model_executor.layers.logits_processor import LogitsProcessor
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead
from vllm.model_executor.models.interfaces import SupportsMultiModal
from vllm.model_executor.models.utils import maybe_prefix
from vllm.multimodal import MULTIMODAL_REGISTRY

from harness.models.moshi import weights as kyutai
from harness.models.moshi.answers import AnswerIds
from harness.models.moshi.depth import DepthTransformer, choose
from harness.models.moshi.processor import (
    FIELD,
    MoshiDummyInputs,
    MoshiProcessingInfo,
    MoshiProcessor,
)
from harness.models.moshi.temporal import TemporalTransformer


@MULTIMODAL_REGISTRY.register_processor(
    MoshiProcessor, info=MoshiProcessingInfo, dummy_inputs=MoshiDummyInputs
)
class KyutaiMoshiForConditionalGeneration(nn.Module, SupportsMultiModal):  # type: ignore[misc]
    """Moshi's language model; Mimi stays with the client, which holds each call's audio state."""

    # A repository of Kyutai's holds Mimi's weights beside these.
    allow_patterns_overrides = ("model*.safetensors",)

    @classmethod
    def get_placeholder_str(cls, modality: str, i: int) -> str | None:
        """Nothing: prompts come rendered."""
        return None

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        config = vllm_config.model_config.hf_config
        self.config = config
        num_code_streams = 2 * config.num_codebooks
        self.text_embedding = nn.Parameter(
            torch.empty(config.text_vocab_size + 1, config.hidden_size), requires_grad=False
        )
        self.code_embeddings = nn.Parameter(
            torch.empty(num_code_streams, config.codebook_size + 1, config.hidden_size),
            requires_grad=False,
        )
        self.temporal = TemporalTransformer(vllm_config, maybe_prefix(prefix, "temporal"))
        self.text_head = ParallelLMHead(
            config.text_vocab_size, config.hidden_size, prefix=maybe_prefix(prefix, "text_head")
        )
        self.text_logits = LogitsProcessor(config.text_vocab_size)
        self.depth = DepthTransformer(config)
        self._answer_ids = AnswerIds(
            text_vocab_size=config.text_vocab_size,
            codebook_size=config.codebook_size,
            num_codebooks=config.num_codebooks,
        )

    def get_language_model(self) -> nn.Module:
        """The part with the KV cache."""
        return self.temporal

    def embed_multimodal(self, **kwargs: Any) -> list[Tensor]:
        """One embedding (1, hidden_size) a frame: the sum over its streams."""
        frames = kwargs.get(FIELD)
        if frames is None:
            return []
        num_streams = len(self.code_embeddings)
        ids = torch.as_tensor(frames).reshape(-1, 1 + num_streams)
        first_rows = torch.arange(num_streams, device=ids.device) * self.code_embeddings.shape[1]
        codes = functional.embedding(ids[:, 1:] + first_rows, self.code_embeddings.flatten(0, 1))
        summed = functional.embedding(ids[:, 0], self.text_embedding) + codes.sum(1)
        return list(summed.unsqueeze(1))

    def embed_input_ids(
        self,
        input_ids: Tensor,
        multimodal_embeddings: Iterable[Tensor] | None = None,
        *,
        is_multimodal: Tensor | None = None,
    ) -> Tensor:
        """Put the frames at their places; nothing else has an embedding."""
        embedded = self.text_embedding.new_zeros(len(input_ids), self.config.hidden_size)
        frames = list(multimodal_embeddings or ())
        if frames and is_multimodal is not None:
            embedded[is_multimodal] = torch.cat(frames).to(embedded.dtype)
        return embedded

    def forward(
        self,
        input_ids: Tensor | None,
        positions: Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: Tensor | None = None,
        **kwargs: Any,
    ) -> Tensor:
        """Hidden states (num_positions, hidden_size)."""
        if inputs_embeds is None:
            assert input_ids is not None
            inputs_embeds = self.embed_input_ids(input_ids)
        hidden: Tensor = self.temporal(inputs_embeds, positions)
        return hidden

    def compute_logits(self, hidden_states: Tensor) -> Tensor | None:
        """Decide text and codes; returns logits that they lead, (n, vocab_size)."""
        logits = self.text_logits(self.text_head, hidden_states)
        if logits is None:
            return None
        text = choose(logits, self.config.text_temperature, self.config.text_top_k)
        return self._answer_ids.pack(text, self.depth(hidden_states, text))

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> set[str]:
        """Fill the model from Kyutai's tensors."""
        return kyutai.load(self, weights)
