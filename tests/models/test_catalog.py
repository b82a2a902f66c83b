import importlib.util
from pathlib import Path

import pytest

from harness.composition import CONFIG_DIR, compose

ROOT = CONFIG_DIR.parent


def test_the_page_of_models_is_what_the_catalog_says() -> None:
    script = ROOT / "scripts" / "write_model_page.py"
    spec = importlib.util.spec_from_file_location("write_model_page", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "models.md").read_text() == module.page()


@pytest.mark.parametrize("entry", sorted(p.name for p in (CONFIG_DIR / "model").glob("*.yaml")))
def test_every_entry_states_its_sources_in_comments(entry: str) -> None:
    text = (CONFIG_DIR / "model" / entry).read_text()
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert any("ource" in line or "from" in line for line in comments)


@pytest.mark.parametrize(
    ("model", "tokens_per_frame", "megabytes_per_s"),
    [
        ("moshi", 1, 6.55),
        ("minicpm_o", 19, 2.80),
        ("qwen2_5_omni", 59, 1.69),
        ("qwen3_omni", 35, 1.72),
    ],
)
def test_growth_of_a_call(model: str, tokens_per_frame: int, megabytes_per_s: float) -> None:
    spec = compose([f"model={model}"]).model
    assert spec.kv_tokens_per_frame == tokens_per_frame
    growth = tokens_per_frame * spec.kv.bytes_per_token / spec.frame_budget_s / 1e6
    assert growth == pytest.approx(megabytes_per_s, abs=0.01)


def test_paths_in_the_guide_exist() -> None:
    guide = (ROOT / "docs" / "add-a-model.md").read_text()
    for path in ("harness/models/catalog.py", "tests/engines/contract.py", "conf/model"):
        assert path in guide
        assert Path(ROOT / path).exists()
