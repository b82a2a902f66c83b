"""Hand-made recordings: a few sessions whose tokens stop, come late, or never come."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import pytest

from harness.composition import compose
from harness.config import RunConfig
from harness.diagnosis.recording import Recording
from harness.telemetry.frames import session_frames

NUM_FRAMES = 10
BUDGET_S = 2.0


@pytest.fixture
def run() -> RunConfig:
    """Two calls of ten frames."""
    return compose(
        ["workload.num_sessions=2", f"workload.duration_s={NUM_FRAMES * BUDGET_S}"]
    ).run_config


Make = Callable[..., Recording]


@pytest.fixture
def recording(run: RunConfig) -> Make:
    """Build a recording from what each session heard and what the pool looked like."""

    def make(
        *,
        answered: Sequence[int] = (NUM_FRAMES, NUM_FRAMES),
        delay_s: float = 0.05,
        lag_s: float = 0.0,
        used_blocks: Sequence[int] = (10, 20, 30),
        running: int = 0,
        waiting: int = 0,
        paused: int = 2,
        events: Sequence[tuple[float, str, int | None, str]] = (),
        prefixes: Sequence[str] = ("a", "b"),
        pool_step_s: float = 0.25,
    ) -> Recording:
        release = np.arange(NUM_FRAMES) * BUDGET_S
        expected = np.full(NUM_FRAMES, run.model.output_tokens_per_frame)
        jitter = np.random.default_rng(0).uniform(0, 1e-3, NUM_FRAMES)
        frames = pd.concat(
            session_frames(
                session_id=session,
                release_s=release,
                released_s=release + lag_s,
                ingest_s=np.full(NUM_FRAMES, 1e-3),
                expected=expected,
                arrival_s=(release + delay_s + jitter)[:count],
                arrived=expected[:count],
                frame_budget_s=BUDGET_S,
                silent_after_frames=run.diagnosis.silent_after_frames,
                tick_wait_share=run.diagnosis.tick_wait_share,
            )
            for session, count in enumerate(answered)
        )
        t_s = np.arange(0, NUM_FRAMES * BUDGET_S, pool_step_s)
        used = np.interp(t_s, np.linspace(0, t_s[-1], len(used_blocks)), used_blocks).round()
        pool = pd.DataFrame({"t_s": t_s, "used_blocks": used}).assign(
            total_blocks=100,
            occupancy=used / 100,
            running=running,
            waiting=waiting,
            paused=paused,
        )
        schedule = frames[["session_id", "frame", "release_s"]].assign(
            clip_id="c",
            offset_s=0.0,
            output_tokens=run.model.output_tokens_per_frame,
            prefix_digest=[prefixes[session] for session in frames["session_id"]],
        )
        table = pd.DataFrame(list(events), columns=["t_s", "kind", "session_id", "detail"])
        return Recording(
            frames=frames.reset_index(drop=True), pool=pool, events=table, schedule=schedule
        )

    return make
