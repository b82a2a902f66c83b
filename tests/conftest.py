"""What several packages' tests need: typed configurations, and speech-like clips made here."""

from collections.abc import Callable

import numpy as np
import pytest

from harness.composition import compose
from harness.config import RunConfig
from harness.workload.corpus import Clip


@pytest.fixture
def run_config() -> Callable[..., RunConfig]:
    """Compose a run from overrides, as the command line does."""

    def make(*overrides: str) -> RunConfig:
        return compose(list(overrides)).run_config

    return make


@pytest.fixture
def clips() -> list[Clip]:
    """Two minutes of noise at 16 kHz in four clips."""
    rng = np.random.default_rng(0)
    return [
        Clip(
            corpus="made_here",
            clip_id=f"noise_{index}",
            sample_rate_hz=16_000,
            samples=rng.normal(0, 0.1, 30 * 16_000).astype(np.float32),
        )
        for index in range(4)
    ]
