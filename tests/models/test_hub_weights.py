"""Real weights come as a snapshot at a pinned commit; no hub is reached here."""

from pathlib import Path

import huggingface_hub
import pytest

from harness.composition import compose
from harness.core.errors import ConfigError
from harness.engines.vllm_args import checkpoint_of
from harness.models.front_ends import load_front_end
from harness.models.hub_weights import hub_snapshot

FOUR = ("moshi", "minicpm_o", "qwen2_5_omni", "qwen3_omni")


@pytest.mark.parametrize("name", FOUR)
def test_real_weights_are_the_snapshot_of_a_commit(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def download(repo: str, *, revision: str) -> str:
        asked.append((repo, revision))
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    run = compose([f"model={name}", "scale=full"]).run_config
    assert checkpoint_of(run, tmp_path / "cache") == str(tmp_path)
    ((repo, revision),) = asked
    assert repo == run.model.weights.repo
    assert len(revision) == 40


def test_weights_that_cannot_be_had_are_named_with_a_way_to_bring_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def download(repo: str, *, revision: str) -> str:
        raise OSError("no route to host.\nmore of it")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    weights = compose(["model=moshi"]).model.weights
    words = rf"fetched \(no route to host\): .*`hf download {weights.repo} --revision \w{{40}}`"
    with pytest.raises(ConfigError, match=words):
        hub_snapshot(weights)


def test_a_published_moshi_has_kyutais_configuration_and_mimi_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    found = load_front_end(compose(["model=moshi"]).model, tmp_path)
    assert found.engine_args["hf_config_path"] != str(tmp_path)
