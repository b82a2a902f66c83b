import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.composition import compose
from harness.engines.vllm_args import engine_args, open_hub, prepare_environment


def _arguments(*overrides: str, **front_end: Any) -> dict[str, Any]:
    run = compose(list(overrides)).run_config
    path = SimpleNamespace(engine_args=front_end)
    return engine_args(run, "checkpoint", path, Path("observer"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("retention", "window"), [("native", 3000), ("unbounded", None), ("sink_window", None)]
)
def test_a_models_own_context_is_vllms_sliding_window_in_a_native_run_and_off_in_others(
    retention: str, window: int | None
) -> None:
    arguments = _arguments(
        "model=moshi", "scale=full", f"retention={retention}", hf_overrides={"a": 1}
    )
    assert arguments["hf_overrides"] == {"a": 1, "sliding_window": window}
    assert ("metronome" in arguments["additional_config"]) is (retention == "sink_window")


def test_a_model_without_a_context_of_its_own_keeps_the_settings_of_its_checkpoint() -> None:
    assert "hf_overrides" not in _arguments("model=qwen2_5_omni")
    kept = _arguments("model=minicpm_o", hf_overrides={"architectures": ["x"]})
    assert kept["hf_overrides"] == {"architectures": ["x"]}


@pytest.mark.parametrize(
    ("users", "is_full", "offline"),
    [(None, False, "1"), (None, True, "0"), ("1", True, "1"), ("0", False, "0")],
)
def test_only_real_weights_ask_the_hub_and_the_users_word_comes_first(
    users: str | None, is_full: bool, offline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is left of it is what was there before the test.
    monkeypatch.setattr(os, "environ", {} if users is None else {"HF_HUB_OFFLINE": users})
    if is_full:
        open_hub()
    prepare_environment()
    assert os.environ["HF_HUB_OFFLINE"] == offline
