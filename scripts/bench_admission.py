"""What admission costs: CPU microseconds a decision and a frame, for each controller.

A benchmark, not a test. Sessions are in already when the clock starts; through the gate, every
arrival is decided on with the signal of all of them flowing, and intervals are judged in between.

    python scripts/bench_admission.py --sessions 200 --decisions 20000
"""

from __future__ import annotations

import argparse
import time
from statistics import mean, quantiles

from harness.admission.build import build_gate
from harness.admission.gate import Gate
from harness.composition import compose
from harness.core.pool_state import PoolState

BUDGET_US = 20.0
CONTROLLERS = ("admit_all", "fixed_cap", "aimd", "forecast_aware")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--decisions", type=int, default=20_000)
    parser.add_argument("--tokens-per-frame", type=int, default=28)
    asked = parser.parse_args()
    print("controller      signal    decision us: mean    p99   frame us: mean")
    worst_us = 0.0
    for name in CONTROLLERS:
        for signal in ("contract", "gateway") if name in ("aimd", "forecast_aware") else ("-",):
            gate = _gate(name, signal)
            decisions_us, frames_us = _drive(
                gate, asked.sessions, asked.decisions, asked.tokens_per_frame
            )
            p99 = quantiles(decisions_us, n=100)[98]
            worst_us = max(worst_us, mean(decisions_us))
            print(
                f"{name:15s} {signal:9s} {mean(decisions_us):17.2f} {p99:6.2f} "
                f"{mean(frames_us):16.2f}"
            )
    print(f"worst mean {worst_us:.1f} us a decision; budget {BUDGET_US:.0f} us")
    return int(worst_us > BUDGET_US)


def _gate(name: str, signal: str) -> Gate:
    overrides = [f"admission={name}", "admission.session_cap=256"]
    if signal != "-":
        overrides.append(f"admission.signal={signal}")
    run = compose([*overrides, "model=qwen3_omni", "engine.max_num_seqs=512"]).run_config
    pool = PoolState(
        stamp_s=0.0,
        total_blocks=36_000,
        used_blocks=9_000,
        num_running=60,
        num_waiting=0,
        num_paused=140,
        num_preempted_waiting=0,
        num_preemptions=0,
        num_steps=1,
        num_scheduled_tokens=0,
    )
    return build_gate(run, lambda: pool)


def _drive(
    gate: Gate, num_sessions: int, num_decisions: int, tokens_per_frame: int
) -> tuple[list[float], list[float]]:
    """One arrival between any two frames; whoever gets in leaves again, so that N stays."""
    for session_id in range(num_sessions):
        gate._live_since[session_id] = 0.0
    decisions_us, frames_us = [], []
    step_s = 2.0 / num_sessions
    for index in range(num_decisions):
        now_s = 1.0 + index * step_s
        session_id = index % num_sessions
        before = time.thread_time()
        gate.released(session_id, now_s, tokens_per_frame)
        for token in range(tokens_per_frame):
            gate.tokens(session_id, 1, now_s + token * 1e-5)
        between = time.thread_time()
        _, decision = gate.arrives(num_sessions, now_s + 1e-3)
        after = time.thread_time()
        if decision.admit:
            gate.leaves(num_sessions)
        frames_us.append((between - before) * 1e6)
        decisions_us.append((after - between) * 1e6)
    return decisions_us, frames_us


if __name__ == "__main__":
    raise SystemExit(main())
