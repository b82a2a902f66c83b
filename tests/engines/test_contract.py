"""The contract suite on every engine: one engine start each, one test a check."""

import multiprocessing
from pathlib import Path

import pytest

from harness.composition import compose
from tests.engines.contract import CHECKS, RECORDED, run_contract

CACHE = Path(__file__).resolve().parents[2] / ".cache"
# 5 frames of 34 tokens a request, 2 of them kept.
RECYCLED = ["retention=recycle", "retention.window_tokens=192", "retention.kept_share=0.4"]
ENGINES = {
    "echo": ["engine=echo", "model.frame_budget_s=1"],
    "vllm": ["engine=vllm", "model.frame_budget_s=1", "engine.record_steps=true"],
    "vllm-bounded": ["engine=vllm", "model.frame_budget_s=1", "retention=sink_window"],
    # Moshi answers in codes, waits for its own last answer, and keeps its own context.
    "vllm-moshi": ["engine=vllm", "model=moshi", "retention=native"],
    "vllm-recycled": ["engine=vllm", "model.frame_budget_s=1", *RECYCLED],
    "sim": ["engine=sim", "model.frame_budget_s=1", "engine.record_steps=true"],
    "sim-bounded": ["engine=sim", "model.frame_budget_s=1", "retention=sink_window"],
    "sim-recycled": ["engine=sim", "model.frame_budget_s=1", *RECYCLED],
    "sim-moshi": ["engine=sim", "model=moshi", "retention=native"],
}
_ENGINE_PARAMS = [
    pytest.param(name, marks=[pytest.mark.live] if name.startswith("vllm") else [])
    for name in ENGINES
]


@pytest.fixture(scope="module", params=_ENGINE_PARAMS)
def findings(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str | None]:
    """What each check of the contract said of one engine."""
    name: str = request.param
    directory = tmp_path_factory.mktemp(name)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["harness.experiments.vllm_preload"])
    receive, send = context.Pipe(duplex=False)
    run = compose(ENGINES[name]).run_config
    process = context.Process(target=run_contract, args=(run, directory, CACHE, send))
    process.start()
    send.close()
    try:
        found: dict[str, str | None] = receive.recv()
    except EOFError:
        pytest.fail((directory / "engine.log").read_text()[-3000:])
    process.join(30)
    return found


@pytest.mark.parametrize("check", CHECKS)
def test_contract(findings: dict[str, str | None], check: str) -> None:
    assert findings[check] is None, findings[check]


def test_recorded_steps_are_what_was_asked_for(findings: dict[str, str | None]) -> None:
    if RECORDED not in findings:
        pytest.skip("this engine was not asked to record its steps")
    assert findings[RECORDED] is None, findings[RECORDED]
