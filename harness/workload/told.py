"""The texts that a model is told, as its own tokens: a probe's, or the same works for another.

A probe's were tokenised when its checkpoint was made. Any other model's are read from the same
archive, which `make probe` fetches, and tokenised by the model's own tokenizer.
"""

from __future__ import annotations

from pathlib import Path

from harness.config import RunConfig
from harness.core.errors import ConfigError, CorpusError
from harness.models.catalog import ModelSpec
from harness.models.probe import read_texts
from harness.workload.cache import CorpusCache
from harness.workload.texts import load_text_manifest, passages

_MANIFEST = Path(__file__).resolve().parents[2] / "audio_corpora" / "texts" / "books.yaml"
# Models that go on from text alone. Moshi does not: with every text token go eight of its codec.
_FAMILIES = ("text", "qwen2_5_omni", "qwen3_omni", "minicpm_o")
# A token of English is shorter than this on average, in any tokenizer that knows words.
_CHARACTERS_PER_TOKEN = 16


def check_is_told(model: ModelSpec) -> None:
    """Refuse a model that cannot go on from text alone. Raises: ConfigError."""
    if model.family not in _FAMILIES:
        raise ConfigError(
            f"model={model.name} cannot be told a text: its tokens are not text alone: choose "
            f"a model of family {', '.join(_FAMILIES)}"
        )


def told_texts(run: RunConfig, checkpoint: str, cache: Path) -> dict[str, list[int]]:
    """Token ids by passage, one a session, each as long as the run.

    checkpoint: directory of the weights. cache: of corpora and checkpoints.

    Raises: CorpusError if the texts were not fetched; ConfigError if one is too short.
    """
    num_tokens = run.num_frames * run.model.prompt_tokens_per_frame
    if run.model.is_probe:
        texts = read_texts(Path(checkpoint))
    else:
        texts = _tokenised(_heads(cache, num_tokens * _CHARACTERS_PER_TOKEN), checkpoint)
    if run.workload.num_sessions > len(texts):
        raise ConfigError(
            f"workload.num_sessions={run.workload.num_sessions} is over the {len(texts)} texts of "
            f"{_MANIFEST.name}: a session is told one"
        )
    told = dict(list(texts.items())[: run.workload.num_sessions])
    for name, ids in told.items():
        if len(ids) < num_tokens:
            raise ConfigError(
                f"text {name} has {len(ids)} tokens, fewer than the {num_tokens} of "
                f"workload.duration_s={run.workload.duration_s:g}: shorten the run"
            )
    return {name: ids[:num_tokens] for name, ids in told.items()}


def _heads(cache: Path, num_characters: int) -> dict[str, str]:
    manifest = load_text_manifest(_MANIFEST)
    archive = CorpusCache(cache / "corpora").archive(manifest.source.filename)
    if not archive.is_file():
        raise CorpusError(f"texts {manifest.corpus}: {archive} is not there: run `make probe`")
    return {name: text[:num_characters] for name, text in passages(manifest, archive).items()}


def _tokenised(texts: dict[str, str], checkpoint: str) -> dict[str, list[int]]:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    return {
        name: list(tokenizer(text, add_special_tokens=False).input_ids)
        for name, text in texts.items()
    }
