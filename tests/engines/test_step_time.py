import itertools
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.composition import CONFIG_DIR
from harness.core.errors import ConfigError
from harness.engines.step_time import MeasuredStep, fit_step_time, step_time_s
from harness.models.hardware import HardwareSpec, StepTime

HARDWARE = sorted((CONFIG_DIR / "hardware").glob("*.yaml"))
# Batch -> seconds of one decode step, published by the paper's authors for an RTX PRO 6000.
QWEN3_DECODE = {1: 4.8e-3, 8: 6.2e-3, 32: 7.9e-3, 64: 9.7e-3, 128: 11.4e-3, 256: 14.4e-3}
MOSHI_STEP = {
    1: 19.6e-3,
    2: 20.1e-3,
    4: 20.9e-3,
    8: 26.4e-3,
    16: 33.2e-3,
    32: 50.2e-3,
    48: 67.7e-3,
}


def _cost(**values: float) -> StepTime:
    return StepTime(
        **{"scale": "full", "evidence": "paper", "source": "", "base_s": 1e-9, **values}
    )


def _hardware(path: Path) -> HardwareSpec:
    return HardwareSpec(**yaml.safe_load(path.read_text()))


def _decode(table: dict[int, float]) -> list[MeasuredStep]:
    return [MeasuredStep(seconds=s, num_requests=batch) for batch, s in table.items()]


def test_a_step_costs_the_sum_of_what_it_computes() -> None:
    cost = _cost(
        base_s=1.0,
        request_s=0.1,
        prefill_step_s=10.0,
        prefill_token_s=0.01,
        frame_s=5.0,
        context_byte_s=1e-3,
    )
    assert step_time_s(cost, num_requests=3) == pytest.approx(1.3)
    assert step_time_s(cost, num_requests=3, context_bytes=200) == pytest.approx(1.5)
    full = step_time_s(cost, num_requests=2, num_prefill_tokens=50, num_frames=1)
    assert full == pytest.approx(1.2 + 10.5 + 5.0)


costs = st.fixed_dictionaries(
    {
        "base_s": st.floats(1e-3, 2e-2),
        "request_s": st.floats(1e-5, 1e-3),
        "prefill_step_s": st.floats(1e-3, 2e-2),
        "prefill_token_s": st.floats(1e-6, 1e-4),
        "context_byte_s": st.floats(1e-13, 1e-11),
    }
)


@given(costs)
def test_a_fit_finds_the_costs_that_made_the_steps(known: dict[str, float]) -> None:
    cost = _cost(**known)
    work = itertools.product((1, 16, 128), (0, 28, 112), (0.0, 1e9, 2e10))
    steps = [
        MeasuredStep(
            seconds=step_time_s(cost, num_requests=n, num_prefill_tokens=p, context_bytes=context),
            num_requests=n,
            num_prefill_tokens=p,
            context_bytes=context,
        )
        for n, p, context in work
    ]
    fit = fit_step_time(steps)
    assert fit.worst_residual < 1e-6
    found = {name: fit.costs[name] for name in known}
    assert found == pytest.approx(known, rel=1e-4)
    assert fit.costs["frame_s"] == 0.0


def _noisy_steps(cost: StepTime, *, spread: float, num_interrupted: int) -> list[MeasuredStep]:
    """Steps of 1 to 32 requests around a cost; the first ones took ten times as long."""
    rng = np.random.default_rng(0)
    steps = []
    for index in range(400):
        requests, frames = int(rng.integers(1, 33)), int(rng.integers(0, 2))
        exact_s = step_time_s(
            cost, num_requests=requests, num_prefill_tokens=14 * frames, num_frames=frames
        )
        factor = 10.0 if index < num_interrupted else float(np.exp(spread * rng.normal()))
        steps.append(
            MeasuredStep(
                seconds=exact_s * factor,
                num_requests=requests,
                num_prefill_tokens=14 * frames,
                num_frames=frames,
            )
        )
    return steps


def test_a_robust_fit_finds_the_costs_through_noise_and_interruptions() -> None:
    known = {"base_s": 2e-3, "request_s": 2e-4, "frame_s": 5e-3}
    steps = _noisy_steps(_cost(**known), spread=0.2, num_interrupted=40)
    left_out = ("prefill_token_s", "prefill_step_s")
    robust = fit_step_time(steps, leave_out=left_out, robust=True)
    assert {name: robust.costs[name] for name in known} == pytest.approx(known, rel=0.15)
    assert robust.spread == pytest.approx(0.2, rel=0.25)
    assert 0.1 < robust.residual(0.5) < robust.residual(0.95) < 1.0


def test_costs_that_grow_together_are_named_instead_of_guessed() -> None:
    steps = _noisy_steps(_cost(base_s=2e-3, frame_s=5e-3), spread=0.1, num_interrupted=0)
    with pytest.raises(ConfigError, match="cannot tell prefill_step_s and prefill_token_s apart"):
        fit_step_time(steps)
    same_load = [MeasuredStep(seconds=1e-3, num_requests=4)] * 10
    with pytest.raises(ConfigError, match="cannot tell base_s and request_s apart"):
        fit_step_time(same_load)
    with pytest.raises(ConfigError, match="leave_out=speed is no cost"):
        fit_step_time(steps, leave_out=["speed"])


def test_a_fit_states_how_far_a_line_is_from_the_published_decode_table() -> None:
    fit = fit_step_time(_decode(QWEN3_DECODE))
    measured = np.array(list(QWEN3_DECODE.values()))
    assert fit.residuals == pytest.approx((fit.predicted_s - measured) / measured)
    assert 0.15 < fit.worst_residual < 0.175


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([], "0 measured steps"),
        ([MeasuredStep(seconds=0.0, num_requests=1)], "each above 0 s"),
        (_decode({1: 1.0}), "cannot tell 2 costs apart (base_s, request_s)"),
    ],
)
def test_steps_that_say_too_little_are_refused(steps: list[MeasuredStep], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fit_step_time(steps)
    assert words in str(caught.value)


def test_the_configured_decode_steps_are_the_fit_of_the_published_ones() -> None:
    gpu = _hardware(CONFIG_DIR / "hardware" / "rtx_pro_6000.yaml")
    qwen3, moshi = gpu.step_time("qwen3_omni"), gpu.step_time("moshi")
    assert qwen3 is not None
    assert moshi is not None
    fit = fit_step_time(_decode(QWEN3_DECODE))
    assert qwen3.base_s == pytest.approx(fit.costs["base_s"], rel=0.01)
    assert qwen3.request_s == pytest.approx(fit.costs["request_s"], rel=0.01)
    # One block of audio alone.
    assert qwen3.prefill_step_s + qwen3.frame_s == pytest.approx(12.7e-3)
    # A call more in a burst of first frames: its 58 prompt tokens and its block of audio.
    assert 58 * qwen3.prefill_token_s + qwen3.frame_s == pytest.approx(1.57e-3, rel=0.02)

    fit = fit_step_time(_decode(MOSHI_STEP))
    assert fit.worst_residual < 0.05
    assert moshi.base_s == pytest.approx(fit.costs["base_s"], rel=0.01)
    full_ring_s = 3000 * 524_288 * moshi.context_byte_s
    assert moshi.request_s + full_ring_s == pytest.approx(fit.costs["request_s"], rel=0.01)


@pytest.mark.parametrize("path", HARDWARE, ids=lambda path: path.stem)
def test_every_step_time_says_where_it_comes_from(path: Path) -> None:
    gpu = _hardware(path)
    for model_name in gpu.step_times:
        cost = gpu.step_time(model_name)
        assert cost is not None
        assert cost.scale in ("tiny", "full")
        assert cost.evidence in ("paper", "live-tiny", "live-full", "simulated")
        assert len(cost.source) > 40
        if cost.context_byte_s and gpu.memory_bytes_per_s:
            assert cost.context_byte_s * gpu.memory_bytes_per_s == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize("name", ["h100", "h200"])
def test_derived_step_times_are_the_calibrated_ones_by_the_ratio_of_bandwidths(name: str) -> None:
    calibrated = _hardware(CONFIG_DIR / "hardware" / "rtx_pro_6000.yaml")
    derived = _hardware(CONFIG_DIR / "hardware" / f"{name}.yaml")
    assert calibrated.memory_bytes_per_s is not None
    assert derived.memory_bytes_per_s is not None
    ratio = calibrated.memory_bytes_per_s / derived.memory_bytes_per_s
    assert derived.step_times.keys() >= calibrated.step_times.keys()
    assert all(entry["evidence"] == "simulated" for entry in derived.step_times.values())
    for model_name in calibrated.step_times:
        entry = derived.step_times[model_name]
        for key, value in entry.items():
            if key.endswith("_s"):
                scale = 1.0 if key == "ingest_frame_s" else ratio
                expected = calibrated.step_times[model_name][key] * scale
                assert value == pytest.approx(expected, rel=0.01), (model_name, key)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"base_s": 0.0}, "base_s=0.0 must be above 0"),
        ({"request_s": -1.0}, "request_s=-1.0 must be 0 or more"),
        ({"requests_s": 1.0}, "unexpected keyword argument 'requests_s'"),
    ],
)
def test_an_impossible_step_time_is_named_with_its_gpu_and_model(
    entry: dict[str, float], words: str
) -> None:
    complete = {"scale": "full", "evidence": "paper", "source": "", "base_s": 1.0, **entry}
    with pytest.raises(ConfigError) as caught:
        HardwareSpec(name="gpu", title="GPU", memory_bytes=1, step_times={"moshi": complete})
    assert str(caught.value).startswith("hardware.step_times.moshi of gpu: ")
    assert words in str(caught.value)
