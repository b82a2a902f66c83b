"""Tiny omni checkpoints: the same bytes every time, and whole enough for transformers to load."""

import hashlib
import json
import platform
from pathlib import Path

import pytest

from harness.core.errors import ConfigError
from harness.models import tiny_minicpm_o, tiny_qwen2_5_omni, tiny_qwen3_omni
from harness.models.tiny import ensure_tiny_checkpoint

RECIPES = {
    "qwen2_5_omni": tiny_qwen2_5_omni,
    "qwen3_omni": tiny_qwen3_omni,
    "minicpm_o": tiny_minicpm_o,
}
WEIGHTS_SHA256 = {
    "qwen2_5_omni": "c1ff91fe497e83a7dea183ed97469bff71ab2bb3ddef2c11700809a5fa2ef242",
    "qwen3_omni": "40b5530c5a4a0e09088358dab3e971004eab210fcb0fb5c17b3f402df98c11db",
    "minicpm_o": "85a03589a6ed282a924c6eda56ae1e2396c108f03560d89aa6489bbca3d32a46",
}


def _digests(directory: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.iterdir())
    }


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_writes_the_same_bytes_whatever_the_random_state(
    tmp_path: Path, name: str
) -> None:
    import torch

    found = []
    for state in (1, 2):
        directory = tmp_path / str(state)
        directory.mkdir()
        torch.manual_seed(state)
        before = torch.get_rng_state()
        RECIPES[name].build(directory)
        assert torch.equal(torch.get_rng_state(), before)
        found.append(_digests(directory))
    assert found[0] == found[1]
    if platform.machine() == "x86_64":
        # Elsewhere torch's normal numbers may differ in the last bit.
        assert found[0]["model.safetensors"] == WEIGHTS_SHA256[name]


@pytest.mark.parametrize("name", RECIPES)
def test_no_checkpoint_holds_code(tmp_path: Path, name: str) -> None:
    RECIPES[name].build(tmp_path)
    assert not list(tmp_path.glob("*.py"))
    for path in tmp_path.glob("*.json"):
        assert "auto_map" not in json.loads(path.read_text()), path.name


def test_output_embeddings_are_the_checkpoints_own_for_vllm_too(tmp_path: Path) -> None:
    # vLLM reads this field of the text backbone, transformers the one above it.
    for name in ("qwen2_5_omni", "qwen3_omni"):
        directory = tmp_path / name
        directory.mkdir()
        RECIPES[name].build(directory)
        thinker = json.loads((directory / "config.json").read_text())["thinker_config"]
        assert thinker["tie_word_embeddings"] is False
        assert thinker["text_config"]["tie_word_embeddings"] is False


def test_a_model_without_a_recipe_is_named_with_those_that_have_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model\.family=gpt has no tiny checkpoint.*minicpm_o"):
        ensure_tiny_checkpoint("gpt", tmp_path)
