"""What the bound costs a decode step: against vLLM's own sliding window of W, and against no bound.

    python scripts/bench_bound.py                          # three sizes, about 4 minutes on 2 cores
    python scripts/bench_bound.py --sizes 2x256 --rounds 9

A round starts one engine of each kind, each in a process of its own, grows 8 sessions well past W
in each, and lets them decode in turns: 32 steps of one, then 32 of the next, so that what the
machine does meanwhile meets all of them. 32 steps are one block: every turn crosses a block's end.
A turn counts with the mean of its steps; printed are medians over turns, of milliseconds and of the
ratios within a turn, these with their middle half. The bound's own work in a step, which is the
compaction of the metadata, is also timed by itself, within those steps.

Random text models, named layers x width: next to a step of 2 ms the bound's own work stands out,
next to one of 20 ms it is what a served model would see. W = 256, and S = 32 under the bound;
`sinks off` has S = 0 and reads what vLLM's own window does, but for the rounding to blocks.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WINDOW_TOKENS, SINK_TOKENS, BLOCK_SIZE_TOKENS, NUM_SESSIONS = 256, 32, 32, 8
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
}
BOUNDS = {
    "own window": None,
    "bounded": {"window_tokens": WINDOW_TOKENS, "sink_tokens": SINK_TOKENS},
    "sinks off": {"window_tokens": WINDOW_TOKENS, "sink_tokens": 0},
    "unbounded": None,
}
COMPACTION = "compaction"


@dataclass(frozen=True)
class Size:
    """A model, the age its sessions start from, and how many turns are timed."""

    num_layers: int
    width: int
    age_tokens: int
    num_turns: int
    variants: tuple[str, ...] = ("own window", "bounded", "sinks off")


SIZES = {
    "2x256": Size(2, 256, 8 * WINDOW_TOKENS, 24, tuple(BOUNDS)),
    "8x512": Size(8, 512, 2 * WINDOW_TOKENS, 16),
    "12x1024": Size(12, 1024, 2 * WINDOW_TOKENS, 8),
}


def save_model(directory: Path, size: Size, *, has_window: bool) -> None:
    """Write a random text model whose layers keep a window of their own, or all."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    kind = "sliding_attention" if has_window else "full_attention"
    num_heads = size.width // 64 if size.width > 256 else 8
    config = Qwen2Config(
        vocab_size=256,
        hidden_size=size.width,
        intermediate_size=size.width * 11 // 4,
        num_hidden_layers=size.num_layers,
        num_attention_heads=num_heads,
        num_key_value_heads=num_heads // 2,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        use_sliding_window=has_window,
        sliding_window=WINDOW_TOKENS,
        max_window_layers=0,
        layer_types=[kind] * size.num_layers,
    )
    Qwen2ForCausalLM(config).to(torch.bfloat16).save_pretrained(directory)


def decode(variant: str, models: Path, size: Size, parent: Any) -> None:
    """Start an engine, grow its sessions, then answer each count of steps with their durations."""
    from vllm import LLM, SamplingParams, TokensPrompt

    longest = size.age_tokens + (size.num_turns + 4) * BLOCK_SIZE_TOKENS
    llm = LLM(
        model=str(models / ("window" if variant == "own window" else "full")),
        skip_tokenizer_init=True,
        enforce_eager=True,
        block_size=BLOCK_SIZE_TOKENS,
        max_model_len=longest,
        max_num_seqs=NUM_SESSIONS,
        max_num_batched_tokens=512,
        enable_prefix_caching=False,
        num_gpu_blocks_override=NUM_SESSIONS * (longest // BLOCK_SIZE_TOKENS) + 1,
        additional_config={"metronome": BOUNDS[variant]} if BOUNDS[variant] else {},
    )
    engine = llm.llm_engine
    sampling = SamplingParams(
        max_tokens=longest - size.age_tokens, temperature=0.0, ignore_eos=True, detokenize=False
    )
    for session in range(NUM_SESSIONS):
        ids = [(7 * place + session) % 250 + 1 for place in range(size.age_tokens)]
        engine.add_request(str(session), TokensPrompt(prompt_token_ids=ids), sampling)
    answered: set[str] = set()
    while len(answered) < NUM_SESSIONS:
        answered.update(output.request_id for output in engine.step())
    spent = time_compaction()
    parent.send("grown")
    while num_steps := parent.recv():
        before_s, started_s = spent[0], time.perf_counter()
        for _ in range(num_steps):
            engine.step()
        parent.send(
            (
                (time.perf_counter() - started_s) / num_steps,
                (spent[0] - before_s) / num_steps,
            )
        )


def time_compaction() -> list[float]:
    """Have seconds spent in compaction added up, in the list that is returned."""
    from harness.vllm_plugin.backend import Compactor

    compact, spent = Compactor.compact, [0.0]

    def timed(self: Any, metadata: Any) -> Any:
        started_s = time.perf_counter()
        compacted = compact(self, metadata)
        spent[0] += time.perf_counter() - started_s
        return compacted

    Compactor.compact = timed  # type: ignore[method-assign]
    return spent


def one_round(models: Path, size: Size) -> dict[str, list[float]]:
    """Mean seconds a step of every turn of every variant, and of compaction in `bounded`."""
    spawn = multiprocessing.get_context("spawn")
    engines = {}
    for variant in size.variants:
        here, there = spawn.Pipe()
        process = spawn.Process(target=decode, args=(variant, models, size, there))
        process.start()
        there.close()
        assert here.recv() == "grown"
        engines[variant] = (process, here)
    turns: dict[str, list[float]] = {variant: [] for variant in (*size.variants, COMPACTION)}
    for turn in range(size.num_turns + 1):
        order = list(size.variants)
        order = order[turn % len(order) :] + order[: turn % len(order)]
        for variant in order:
            engines[variant][1].send(BLOCK_SIZE_TOKENS)
            step_s, compaction_s = engines[variant][1].recv()
            if turn:  # The first is a warm-up.
                turns[variant].append(step_s)
                if variant == "bounded":
                    turns[COMPACTION].append(compaction_s)
    for process, here in engines.values():
        here.send(0)
        process.join()
    return turns


def middle(values: list[float]) -> tuple[float, float, float]:
    """Median, and the ends of the middle half."""
    low, median, high = statistics.quantiles(values, n=4)
    return median, low, high


def report(name: str, turns: dict[str, list[float]]) -> dict[str, Any]:
    """Print milliseconds a step and the ratios of one size."""
    steps_ms = {variant: statistics.median(s) * 1e3 for variant, s in turns.items()}
    print(f"{name}: " + ", ".join(f"{variant} {ms:.3f} ms" for variant, ms in steps_ms.items()))
    pairs = [("bounded", "own window"), ("sinks off", "own window"), ("bounded", "unbounded")]
    ratios = {}
    for above, below in pairs:
        if below in turns:
            found = [a / b for a, b in zip(turns[above], turns[below], strict=True)]
            median, low, high = middle(found)
            ratios[f"{above} over {below}"] = [median, low, high]
            print(f"  {above} over {below}: {median:.3f} ({low:.3f} to {high:.3f})")
    return {"step_ms": steps_ms, "ratios": ratios, "num_turns": len(turns["bounded"])}


def main() -> None:
    """Print milliseconds a step, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=2, help="engines of each kind")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    found = {}
    for name in options.sizes:
        size = SIZES[name]
        turns: dict[str, list[float]] = {variant: [] for variant in (*size.variants, COMPACTION)}
        with tempfile.TemporaryDirectory() as directory:
            models = Path(directory)
            save_model(models / "full", size, has_window=False)
            save_model(models / "window", size, has_window=True)
            for _ in range(options.rounds):
                for variant, means in one_round(models, size).items():
                    turns[variant] += means
        found[name] = report(name, turns)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
