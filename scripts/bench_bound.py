"""What the bound costs a decode step: against no bound, and against vLLM's own sliding window.

    python scripts/bench_bound.py                   # about 2 minutes on 2 cores
    python scripts/bench_bound.py --rounds 9

A round starts each engine once, in a process of its own, and times its decode steps: 8 sessions,
grown to 8 x W tokens. Engines of a round are compared with each other only, and medians over the
rounds are printed, with their range. A two-layer text model, so that what the bound itself costs is
not hidden by a model's work; W = 256, S = 32 (sinks only under the bound).
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

WINDOW_TOKENS, SINK_TOKENS, AGE_TOKENS = 256, 32, 8 * 256
NUM_SESSIONS, NUM_STEPS = 8, 200
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
}
VARIANTS = ("unbounded", "own window", "bounded")


def save_model(directory: Path, *, has_window: bool) -> None:
    """Write a random two-layer text model whose layers keep a window of their own, or all."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    kind = "sliding_attention" if has_window else "full_attention"
    config = Qwen2Config(
        vocab_size=256,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=2,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        use_sliding_window=has_window,
        sliding_window=WINDOW_TOKENS,
        max_window_layers=0,
        layer_types=[kind] * 2,
    )
    Qwen2ForCausalLM(config).to(torch.bfloat16).save_pretrained(directory)


def median_step_s(variant: str, models: Path, results: Any) -> None:
    """Start an engine, grow its sessions, and send the median duration of a decode step."""
    from vllm import LLM, SamplingParams, TokensPrompt

    bound = {"window_tokens": WINDOW_TOKENS, "sink_tokens": SINK_TOKENS}
    llm = LLM(
        model=str(models / ("window" if variant == "own window" else "full")),
        skip_tokenizer_init=True,
        enforce_eager=True,
        block_size=32,
        max_model_len=4096,
        max_num_seqs=NUM_SESSIONS,
        max_num_batched_tokens=512,
        enable_prefix_caching=False,
        num_gpu_blocks_override=NUM_SESSIONS * 128 + 1,
        additional_config={"metronome": bound} if variant == "bounded" else {},
    )
    engine = llm.llm_engine
    sampling = SamplingParams(
        max_tokens=NUM_STEPS, temperature=0.0, ignore_eos=True, detokenize=False
    )
    for session in range(NUM_SESSIONS):
        ids = [(7 * place + session) % 250 + 1 for place in range(AGE_TOKENS)]
        engine.add_request(str(session), TokensPrompt(prompt_token_ids=ids), sampling)
    durations = []
    while engine.has_unfinished_requests():
        started = time.perf_counter()
        engine.step()
        durations.append(time.perf_counter() - started)
    # The last steps are all decodes; those before them compute prompts.
    results.send(statistics.median(durations[-NUM_STEPS // 2 :]))


def measured(variant: str, models: Path) -> float:
    """One engine in a process of its own, seconds a decode step."""
    receive, send = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(
        target=median_step_s, args=(variant, models, send)
    )
    process.start()
    send.close()
    duration_s = float(receive.recv())
    process.join()
    return duration_s


def ratio(rounds: list[dict[str, float]], over: str) -> str:
    """Median and range of bounded over another engine of the same round."""
    found = sorted(round_["bounded"] / round_[over] for round_ in rounds)
    return f"{statistics.median(found):.3f} ({found[0]:.3f} to {found[-1]:.3f})"


def main() -> None:
    """Print milliseconds a step, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="engines of each kind")
    num_rounds = parser.parse_args().rounds
    os.environ.update(ENVIRONMENT)
    rounds = []
    with tempfile.TemporaryDirectory() as directory:
        models = Path(directory)
        save_model(models / "full", has_window=False)
        save_model(models / "window", has_window=True)
        for _ in range(num_rounds):
            rounds.append({variant: measured(variant, models) for variant in VARIANTS})
            line = ", ".join(f"{name} {s * 1e3:.3f} ms" for name, s in rounds[-1].items())
            print(line, flush=True)
    print(f"bounded over vLLM's own window of W: {ratio(rounds, 'own window')}")
    print(f"bounded over unbounded, at 8 x W:    {ratio(rounds, 'unbounded')}")


if __name__ == "__main__":
    main()
