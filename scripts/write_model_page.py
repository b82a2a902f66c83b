"""Write docs/models.md from the catalog in conf/model/; a test keeps the two equal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.composition import CONFIG_DIR, compose
from harness.models.catalog import ModelSpec

Row = tuple[str, Callable[[ModelSpec], str]]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "models.md"

_HEAD = """# Models

Made by `python scripts/write_model_page.py` from `conf/model/`, where each fact's source stands.
Tokens are KV positions. A frame of c prompt tokens and m output tokens adds c + m - 1: the last
sampled token is never computed. To add a model: [add-a-model.md](add-a-model.md).
A model's own bound on context is kept by `retention=native`
([moshi_context.md](moshi_context.md)) and switched off otherwise. Revision `main` is whatever the
hub serves on that day: no commit could be looked up where this was written, so pin one in
`conf/model/` before you compare runs of different days.
"""

_LOOPS = """## Loops without audio

They are simulated only (`engine=sim`), on the geometry of a published text model: what
[beyond_voice.md](beyond_voice.md) is about.
"""

_PROBES = """## Probes

Small text models with real weights, to measure with on any machine; none of the four. `make probe`
fetches them. What they are for: [sinks.md](sinks.md).
"""


def page() -> str:
    """The whole page, from every entry of the catalog."""
    # Without a size, which fits an entry to one scale.
    models = [compose([f"model={path.stem}", "~size"]).model for path in sorted(_entries())]
    probes = [model for model in models if model.is_probe]
    voices = [m for m in models if m.sample_rate_hz is not None and not m.is_probe]
    loops = [model for model in models if model.sample_rate_hz is None]
    rows: list[Row] = [
        ("`model=`", lambda m: f"`{m.name}`"),
        ("frame budget B", lambda m: f"{m.frame_budget_s:g} s"),
        ("sample rate", lambda m: f"{m.sample_rate_hz / 1000:g} kHz"),
        ("audio tokens a second", lambda m: f"{m.audio_tokens_per_s:g}"),
        ("prompt tokens a frame", lambda m: f"{m.prompt_tokens_per_frame}"),
        ("output tokens a frame", lambda m: f"{m.output_tokens_per_frame}"),
        ("KV tokens a frame", lambda m: f"{m.kv_tokens_per_frame}"),
        ("layers x KV heads x head size", _shape),
        ("KV bytes a token", lambda m: f"{m.kv.bytes_per_token:,}"),
        ("KV growth a call", _growth),
        ("own bound on context", _context),
        ("weights", lambda m: f"`{m.weights.repo}`"),
        ("revision", lambda m: f"`{m.weights.revision}`"),
        ("licence", lambda m: m.weights.licence),
        ("memory of the weights, bf16", lambda m: f"{m.weights.size_bytes(2) / 1e9:.1f} GB"),
    ]
    unheard = ("sample rate", "audio tokens a second")
    of_loops = [(label, cell) for label, cell in rows if label not in unheard]
    parts = (
        (_HEAD, _table(voices, rows)),
        (_LOOPS, _table(loops, of_loops)),
        (_PROBES, _table(probes, rows)),
    )
    return "\n".join(f"{text}\n{table}" for text, table in parts)


def _table(models: list[ModelSpec], rows: list[Row]) -> str:
    lines = [
        "| | " + " | ".join(model.title for model in models) + " |",
        "|" + "---|" * (len(models) + 1),
        *(f"| {label} | " + " | ".join(cell(m) for m in models) + " |" for label, cell in rows),
    ]
    return "\n".join(lines) + "\n"


def _entries() -> list[Path]:
    return list((CONFIG_DIR / "model").glob("*.yaml"))


def _shape(model: ModelSpec) -> str:
    return f"{model.kv.num_layers} x {model.kv.num_kv_heads} x {model.kv.head_size}"


def _growth(model: ModelSpec) -> str:
    per_second = model.kv_tokens_per_frame / model.frame_budget_s
    return f"{per_second:.1f} tokens, {per_second * model.kv.bytes_per_token / 1e6:.2f} MB a second"


def _context(model: ModelSpec) -> str:
    context = model.native_context_tokens
    if context is None:
        return "none"
    return f"{context:,} tokens, {context * model.kv.bytes_per_token / 1e9:.2f} GB a call"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE.relative_to(PAGE.parents[1])}")
