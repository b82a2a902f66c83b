"""Tiny random-weight checkpoints of the true architectures, made offline and the same everywhere.

Real weights need a hub and a GPU. A tiny checkpoint has the same classes, audio path, tokenizer
layout and tokens a frame, with two narrow layers; what it says is noise, and when it speaks is not.
A checkpoint is made once per recipe version and cached; a half-made one is never taken for whole.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.core.errors import ConfigError
from harness.core.files import building, is_complete
from harness.models import tiny_minicpm_o, tiny_moshi, tiny_qwen2_5_omni, tiny_qwen3_omni

# Raise when a recipe changes what it writes: old checkpoints are then left behind, not reused.
RECIPE_VERSION = 2

_RECIPES: dict[str, Callable[[Path], None]] = {
    "qwen2_5_omni": tiny_qwen2_5_omni.build,
    "qwen3_omni": tiny_qwen3_omni.build,
    "minicpm_o": tiny_minicpm_o.build,
    "moshi": tiny_moshi.build,
}


def ensure_tiny_checkpoint(family: str, cache: Path) -> Path:
    """Directory of a model family's tiny checkpoint, made first if it is not in the cache.

    Raises: ConfigError if the family has no recipe.
    """
    recipe = _RECIPES.get(family)
    if recipe is None:
        raise ConfigError(
            f"model.family={family} has no tiny checkpoint: scale=tiny runs {', '.join(_RECIPES)}"
        )
    target = cache / "checkpoints" / f"{family}-tiny-v{RECIPE_VERSION}"
    if not is_complete(target):
        with building(target) as directory:
            if directory is not None:
                recipe(directory)
    return target
