"""A probe's checkpoint: real weights, dequantised once, and the texts it is made to say.

    <cache>/checkpoints/<model>-bf16-v1/
        config.json model.safetensors tokenizer.json ...   what vLLM and transformers load
        texts.json                                         passage -> token ids, from its beginning
        COMPLETE                                           last

Made by `scripts/fetch_probe.py` (harness/workload/probe_weights.py); runs only read it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from harness.core.errors import ConfigError
from harness.core.files import building, is_complete
from harness.models.catalog import ModelSpec

# Raise when what is written changes: old checkpoints are then left behind, not reused.
FORMAT_VERSION = 1
_TEXTS = "texts.json"


def probe_directory(model: ModelSpec, cache: Path) -> Path:
    """Where a probe's checkpoint lies once it is made."""
    return cache / "checkpoints" / f"{model.name}-bf16-v{FORMAT_VERSION}"


def probe_checkpoint(model: ModelSpec, cache: Path) -> Path:
    """Directory of a probe's checkpoint. Raises: ConfigError if it has not been fetched."""
    directory = probe_directory(model, cache)
    if not is_complete(directory):
        raise ConfigError(
            f"model={model.name} has no weights in {directory}: run `make probe`, or "
            f"`python scripts/fetch_probe.py {model.name}`"
        )
    return directory


def read_texts(directory: Path) -> dict[str, list[int]]:
    """Token ids of every passage by its name, in the manifest's order."""
    texts: dict[str, list[int]] = json.loads((directory / _TEXTS).read_text())
    return texts


def write_probe(gguf: Path, texts: Mapping[str, str], target: Path, *, max_tokens: int) -> None:
    """Make a checkpoint of a GGUF file; `target` appears whole or not at all.

    max_tokens: of each text that are kept.

    Raises: ConfigError if the file cannot be read as a model.
    """
    with building(target) as directory:
        if directory is not None:
            _dequantise(gguf, directory)
            ids = _tokenise(texts, directory, max_tokens)
            (directory / _TEXTS).write_text(json.dumps(ids))


def _dequantise(gguf: Path, directory: Path) -> None:
    """Weights in float32, rounded once to bf16, and the tokenizer, as transformers writes them."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    from transformers.utils import logging

    logging.disable_progress_bar()
    source = {"gguf_file": gguf.name}
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), **source)
        model = AutoModelForCausalLM.from_pretrained(
            str(gguf.parent),
            **source,
            dtype=torch.float32,
            quantization_config=GgufConfig(dequantize=True),
        )
    except (OSError, ValueError, ImportError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"weights {gguf.name}: cannot be read as a model ({reason}): are `gguf` and "
            "`accelerate` installed as pyproject.toml pins them (`make setup`)?"
        ) from error
    model.to(torch.bfloat16).save_pretrained(directory)
    tokenizer.save_pretrained(directory)


def _tokenise(texts: Mapping[str, str], directory: Path, max_tokens: int) -> dict[str, list[int]]:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(directory))
    # Some ten characters a token at most: what is cut off behind is never looked at.
    heads = {name: text[: 16 * max_tokens] for name, text in texts.items()}
    return {name: tokenizer(text).input_ids[:max_tokens] for name, text in heads.items()}
