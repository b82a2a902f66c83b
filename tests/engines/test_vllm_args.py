from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.composition import compose
from harness.engines.vllm_args import engine_args


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
