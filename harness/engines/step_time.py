"""How long a step takes: a linear cost, and its fit to measured steps.

    step = base + request n + prefill_step [p > 0] + prefill_token p + frame f + context_byte c

n requests, p prompt tokens, f frames of audio encoded, c bytes of KV cache read. Real decode times
bend where a line does not (experts of an MoE fill up, kernels saturate), so a fit states its
residuals.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares, nnls

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
# Relative error from which on a robust fit counts an error by its size, no longer by its square.
ROBUST_FROM = 0.1
_NEGLIGIBLE = 1e-9
# Half the distance between the quartiles of a normal distribution, in standard deviations, doubled.
_QUARTILES_APART = 1.349


def step_time_s(
    cost: StepTime,
    *,
    num_requests: int,
    num_prefill_tokens: float = 0,
    num_frames: float = 0,
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

    def residual(self, quantile: float) -> float:
        """Relative error, without its sign, that this share of the steps does not exceed."""
        return float(np.quantile(np.abs(self.residuals), quantile))

    @property
    def worst_residual(self) -> float:
        """Largest relative error, without its sign."""
        return self.residual(1.0)

    @property
    def spread(self) -> float:
        """Standard deviation of log(predicted / measured) by its quartiles: tails do not count."""
        low, high = np.quantile(np.log1p(self.residuals), [0.25, 0.75])
        return float(high - low) / _QUARTILES_APART


def fit_step_time(
    steps: Sequence[MeasuredStep], *, leave_out: Collection[str] = (), robust: bool = False
) -> StepTimeFit:
    """Non-negative costs with the least squared relative error: a small batch counts as a large.

    leave_out: fields of StepTime that are to be 0.
    robust: what typical steps take: errors are of the logarithm, and beyond ROBUST_FROM they count
        by their size (scipy's soft_l1), so that what other work has interrupted decides little.

    Raises: ConfigError if there are no steps, one took no time, or they do not tell the costs that
    they vary apart.
    """
    unknown = sorted(set(leave_out) - set(FITTED))
    if unknown:
        raise ConfigError(f"leave_out={unknown[0]} is no cost: choose {' or '.join(FITTED)}")
    measured = np.array([step.seconds for step in steps])
    if not len(steps) or not (measured > 0).all():
        raise ConfigError(f"{len(steps)} measured steps, each above 0 s, are needed for a fit")
    design = _design(steps)
    design[:, [FITTED.index(name) for name in leave_out]] = 0.0
    varied = np.flatnonzero(design.any(axis=0))
    # Columns differ by ten orders of magnitude (a step, a byte): bring each to one.
    scales = np.ones(len(FITTED))
    scales[varied] = design[:, varied].max(axis=0)
    scaled = design[:, varied] / scales[varied]
    _check_apart(scaled, [FITTED[column] for column in varied])
    relative = scaled / measured[:, None]
    found, _ = nnls(relative, np.ones(len(steps)))
    if robust:
        found = least_squares(
            lambda costs: np.log(relative @ costs),
            # Within the bounds, where this method has to begin.
            found + _NEGLIGIBLE * measured.max(),
            bounds=(0.0, np.inf),
            x_scale="jac",
            loss="soft_l1",
            f_scale=ROBUST_FROM,
        ).x
        found[found < _NEGLIGIBLE * measured.max() * 10] = 0.0
    costs = np.zeros(len(FITTED))
    costs[varied] = found / scales[varied]
    predicted = design @ costs
    return StepTimeFit(
        costs=dict(zip(FITTED, costs.tolist(), strict=True)),
        predicted_s=predicted,
        residuals=(predicted - measured) / measured,
    )


def _check_apart(columns: npt.NDArray[np.float64], names: Sequence[str]) -> None:
    """Refuse steps from which more than one set of costs follows.

    columns: (num_steps, num_costs), the largest entry of each column 1.
    """
    if len(columns) < len(names):
        raise ConfigError(
            f"{len(columns)} measured steps cannot tell {len(names)} costs apart "
            f"({', '.join(names)}): measure more of them, or name some in calibration.leave_out"
        )
    if np.linalg.matrix_rank(columns, tol=1e-6 * len(columns) ** 0.5) == len(names):
        return
    for one, other in itertools.combinations(range(len(names)), 2):
        if np.linalg.matrix_rank(columns[:, [one, other]], tol=1e-6 * len(columns) ** 0.5) < 2:
            names = (names[one], names[other])
            break
    raise ConfigError(
        f"{len(columns)} measured steps cannot tell {' and '.join(names)} apart, which grow "
        "together in all of them: vary one of them alone, or name one in calibration.leave_out"
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
