"""How long a step takes: a linear cost, and its fit to measured steps.

    step = base + request n + prefill_step [p > 0] + prefill_token p + frame f + context_byte c

n requests, p prompt tokens, f frames of audio encoded, c bytes of KV cache read. Real decode times
bend where a line does not (experts of an MoE fill up, kernels saturate), so a fit states its
residuals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from harness.core.errors import ConfigError
from harness.models.hardware import StepTime

# Fields of StepTime that the fit can find, in the order of the columns of `_design`.
FITTED = (
    "base_s",
    "request_s",
    "prefill_step_s",
    "prefill_token_s",
    "frame_s",
    "context_byte_s",
)


def step_time_s(
    cost: StepTime,
    *,
    num_requests: int,
    num_prefill_tokens: int = 0,
    num_frames: int = 0,
    context_bytes: float = 0.0,
) -> float:
    """Seconds that one step takes.

    Example: base 5.6 ms, request 0.04 ms, 32 requests that decode -> 6.88 ms.
    """
    seconds = (
        cost.base_s
        + cost.request_s * num_requests
        + cost.frame_s * num_frames
        + cost.context_byte_s * context_bytes
    )
    if num_prefill_tokens:
        seconds += cost.prefill_step_s + cost.prefill_token_s * num_prefill_tokens
    return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStep:
    """What one step computed, as in `step_time_s`, and how long it took."""

    seconds: float
    num_requests: int
    num_prefill_tokens: int = 0
    num_frames: int = 0
    context_bytes: float = 0.0


@dataclass(frozen=True, kw_only=True)
class StepTimeFit:
    """A fitted cost.

    costs: field of StepTime -> seconds; 0 for what the steps do not vary.
    predicted_s: (num_steps,) what the fit says of each measured step.
    residuals: (num_steps,) (predicted - measured) / measured.
    """

    costs: dict[str, float]
    predicted_s: npt.NDArray[np.float64]
    residuals: npt.NDArray[np.float64]

    @property
    def worst_residual(self) -> float:
        """Largest relative error, without its sign."""
        return float(np.abs(self.residuals).max())


def fit_step_time(steps: Sequence[MeasuredStep]) -> StepTimeFit:
    """Non-negative costs with the least squared relative error: a small batch counts as a large.

    Raises: ConfigError if there are no steps, one took no time, or they are fewer than the costs
    that they vary.
    """
    measured = np.array([step.seconds for step in steps])
    if not len(steps) or not (measured > 0).all():
        raise ConfigError(f"{len(steps)} measured steps, each above 0 s, are needed for a fit")
    design = _design(steps)
    varied = np.flatnonzero(design.any(axis=0))
    if len(steps) < len(varied):
        names = ", ".join(FITTED[column] for column in varied)
        raise ConfigError(
            f"{len(steps)} measured steps cannot tell {len(varied)} costs apart ({names}): "
            "measure more of them"
        )
    # Columns differ by ten orders of magnitude (a step, a byte): bring each to one.
    scales = np.ones(len(FITTED))
    scales[varied] = design[:, varied].max(axis=0)
    scaled = design[:, varied] / scales[varied] / measured[:, None]
    found, _ = nnls(scaled, np.ones(len(steps)))
    costs = np.zeros(len(FITTED))
    costs[varied] = found / scales[varied]
    predicted = design @ costs
    return StepTimeFit(
        costs=dict(zip(FITTED, costs.tolist(), strict=True)),
        predicted_s=predicted,
        residuals=(predicted - measured) / measured,
    )


def _design(steps: Sequence[MeasuredStep]) -> npt.NDArray[np.float64]:
    """(num_steps, 6): what each step computed, in the order of FITTED."""
    return np.array(
        [
            (
                1.0,
                step.num_requests,
                float(step.num_prefill_tokens > 0),
                step.num_prefill_tokens,
                step.num_frames,
                step.context_bytes,
            )
            for step in steps
        ]
    )
