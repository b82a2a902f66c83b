"""What the recipes of tiny omni checkpoints share: tokenizer, audio features, seeded weights.

Imports torch and transformers only when called: making a checkpoint is rare, naming one is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def byte_level_tokenizer(
    plain: Mapping[str, str], named: Mapping[str, str]
) -> tuple[Any, dict[str, int]]:
    """A tokenizer of 256 bytes and special tokens, and the ids of the special ones by name.

    plain: transformers' own names (`eos_token`, ...) -> text.
    named: the model's names -> text; attributes of the tokenizer, `name` and `name_id`.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    byte_level = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    byte_level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    byte_level.decoder = decoders.ByteLevel()
    special = {**plain, **named}
    byte_level.add_special_tokens([AddedToken(text, special=True) for text in special.values()])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=byte_level, **plain, extra_special_tokens=dict(named)
    )
    return tokenizer, {
        name: tokenizer.convert_tokens_to_ids(text) for name, text in special.items()
    }


def log_mel_features(*, num_mel_bins: int, chunk_length_s: int) -> Any:
    """Whisper's feature extractor at 16 kHz: one log-mel frame every 10 ms.

    chunk_length_s: what a real checkpoint pads to unless told otherwise.
    """
    from transformers import WhisperFeatureExtractor

    return WhisperFeatureExtractor(
        feature_size=num_mel_bins,
        sampling_rate=16_000,
        hop_length=160,
        n_fft=400,
        chunk_length=chunk_length_s,
        return_attention_mask=True,
    )


def drawn_from(seed: int, make: Callable[[], Any]) -> Any:
    """What `make` returns (modules with random weights), the same for the same seed.

    The caller's own random state is left as it was.
    """
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def save_weights(directory: Path, weights: Mapping[str, Any]) -> None:
    """Write name -> tensor as bf16 in one `model.safetensors`."""
    import torch
    from safetensors.torch import save_file

    save_file(
        {name: tensor.to(torch.bfloat16).contiguous() for name, tensor in weights.items()},
        directory / "model.safetensors",
        metadata={"format": "pt"},
    )
