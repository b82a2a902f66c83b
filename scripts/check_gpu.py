"""Whether compacted metadata gives attention over sinks and window on a GPU, and what it saves.

    python scripts/check_gpu.py                                 # one CUDA device, under 8 minutes
    python scripts/check_gpu.py --device cpu --quick            # the same code path, anywhere

Random keys and values in pages; of every session the pages between its sinks and its window are
freed and hold NaN. Each kernel gets the block table and lengths that the plugin's `Compactor` makes
of a vLLM batch, and is compared with a softmax in float32 over everything, under the mask that the
bound means (`harness.kv.retention.is_visible`). Then decode steps are timed, bounded and unbounded.
One layer of each model of the catalog; a step of the model is that, times its layers. PyTorch's
kernel knows no pages: they are copied together first, which is part of its times.

Written to `--out`, with provenance: one entry a check, what was skipped, and why. The exit status
is 1 if a check failed. No weights, no engine: serving on a GPU is `experiment=cliff scale=full`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from vllm.v1.attention.backend import CommonAttentionMetadata

from harness.composition import compose
from harness.kv.retention import Retention, is_visible, live_blocks
from harness.telemetry.provenance import provenance
from harness.vllm_plugin.backend import Compactor
from harness.vllm_plugin.spec import SinkWindowSpec

# Query heads are no part of a cache's geometry. Source: the published configs of each model.
NUM_QUERY_HEADS = {"moshi": 32, "minicpm_o": 32, "qwen2_5_omni": 28, "qwen3_omni": 32}
BLOCK_SIZE_TOKENS = 32
NUM_TIMED, NUM_WARM_UP = 50, 10
# bfloat16 keeps 8 bits; outputs are averages of values of unit variance.
TOLERANCE = {torch.bfloat16: 2e-2, torch.float32: 1e-4}


@dataclass(frozen=True)
class Plan:
    """What a run covers. contexts: tokens of each session; retention: under the bound."""

    device: str
    dtype: torch.dtype
    contexts: tuple[int, ...]
    num_sessions: int
    chunk_tokens: int
    retention: Retention
    limit_s: float


FULL = Plan(
    "cuda",
    torch.bfloat16,
    (1024, 8192, 32768),
    8,
    64,
    Retention(window_tokens=1024, sink_tokens=16),
    limit_s=420.0,
)
QUICK = Plan(
    "cpu",
    torch.float32,
    (64, 256),
    2,
    8,
    Retention(window_tokens=64, sink_tokens=16),
    limit_s=60.0,
)


@dataclass(frozen=True)
class Shape:
    """One layer: heads that ask, heads that are cached, and their size."""

    num_query_heads: int
    num_kv_heads: int
    head_size: int


@dataclass(frozen=True)
class Batch:
    """Sessions that each compute `num_new` tokens after `context - num_new` others.

    query: (B x num_new, query heads, size). keys, values: everything, (B, context, kv heads, size).
    key_cache, value_cache: pages, (blocks, block, kv heads, size). metadata: as vLLM makes them.
    """

    query: Tensor
    keys: Tensor
    values: Tensor
    key_cache: Tensor
    value_cache: Tensor
    metadata: CommonAttentionMetadata


def make_batch(shape: Shape, context: int, num_new: int, plan: Plan, *, is_bounded: bool) -> Batch:
    """Draw a batch whose pages are scattered; under the bound freed pages hold NaN."""
    generator = torch.Generator(device=plan.device).manual_seed(context)
    width = -(-context // BLOCK_SIZE_TOKENS)
    num_sessions = plan.num_sessions

    def draw(*size: int) -> Tensor:
        return torch.randn(size, generator=generator, device=plan.device, dtype=plan.dtype)

    query = draw(num_sessions * num_new, shape.num_query_heads, shape.head_size)
    keys, values = (
        draw(num_sessions, width * BLOCK_SIZE_TOKENS, shape.num_kv_heads, shape.head_size)
        for _ in range(2)
    )
    order = torch.randperm(num_sessions * width, generator=generator, device=plan.device)
    table = (order + 1).view(num_sessions, width).to(torch.int32)
    caches = []
    for all_of_it in (keys, values):
        pages = all_of_it.view(num_sessions * width, BLOCK_SIZE_TOKENS, *all_of_it.shape[2:])
        cache = torch.full(
            (num_sessions * width + 1, *pages.shape[1:]),
            float("nan"),
            device=plan.device,
            dtype=plan.dtype,
        )
        cache[order + 1] = pages
        caches.append(cache)
    if is_bounded:
        num_kept = live_blocks(
            context - num_new, plan.retention, BLOCK_SIZE_TOKENS, num_new_tokens=num_new
        )
        num_sinks = -(-plan.retention.sink_tokens // BLOCK_SIZE_TOKENS)
        freed = slice(num_sinks, num_sinks + width - num_kept)
        for cache in caches:
            cache[table[:, freed].reshape(-1).long()] = float("nan")
        table[:, freed] = 0
    starts = torch.arange(num_sessions + 1, dtype=torch.int32) * num_new
    seq_lens = torch.full((num_sessions,), context, dtype=torch.int32)
    metadata = CommonAttentionMetadata(
        query_start_loc=starts.to(plan.device),
        query_start_loc_cpu=starts,
        seq_lens=seq_lens.to(plan.device),
        seq_lens_cpu_upper_bound=seq_lens,
        num_reqs=num_sessions,
        num_actual_tokens=num_sessions * num_new,
        max_query_len=num_new,
        max_seq_len=context,
        block_table_tensor=table,
        slot_mapping=torch.arange(num_sessions * num_new, device=plan.device),
    )
    return Batch(query, keys[:, :context], values[:, :context], *caches, metadata)


def compactor(shape: Shape, plan: Plan) -> Compactor:
    """The plugin's own, as a builder on a GPU has it, with the buffers that graphs read."""
    assert plan.retention.window_tokens is not None
    spec = SinkWindowSpec(
        block_size=BLOCK_SIZE_TOKENS,
        sliding_window=plan.retention.window_tokens,
        sink_tokens=plan.retention.sink_tokens,
        num_kv_heads=shape.num_kv_heads,
        head_size=shape.head_size,
        dtype=plan.dtype,
    )
    return Compactor(spec, max_num_reqs=plan.num_sessions, on_host=False)


def reference(batch: Batch, num_new: int, retention: Retention) -> Tensor:
    """Softmax in float32 over all keys under the mask; as `Batch.query`."""
    num_sessions, context, num_kv_heads, head_size = batch.keys.shape
    start = context - num_new
    mask = torch.tensor(
        [
            [
                is_visible(key, start + row, start, retention, BLOCK_SIZE_TOKENS)
                for key in range(context)
            ]
            for row in range(num_new)
        ],
        device=batch.keys.device,
    )
    query = batch.query.float().view(num_sessions, num_new, num_kv_heads, -1, head_size)
    scores = torch.einsum("bqhgd,bkhd->bhgqk", query, batch.keys.float()) * head_size**-0.5
    weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
    out = torch.einsum("bhgqk,bkhd->bqhgd", weights, batch.values.float())
    return out.reshape(batch.query.shape)


Kernel = Callable[[Batch, CommonAttentionMetadata], Tensor]


def sdpa(batch: Batch, metadata: CommonAttentionMetadata) -> Tensor:
    """PyTorch's attention over the pages that a block table names."""
    num_sessions, num_new = metadata.num_reqs, metadata.max_query_len
    # Of equal age here, so that one length holds for all.
    length = int(metadata.seq_lens_cpu_upper_bound[0])
    places = metadata.block_table_tensor[:, : -(-length // BLOCK_SIZE_TOKENS)].long()
    keys, values = (
        cache[places].flatten(1, 2)[:, :length].transpose(1, 2)
        for cache in (batch.key_cache, batch.value_cache)
    )
    query = batch.query.unflatten(0, (num_sessions, num_new)).transpose(1, 2)
    ends = torch.arange(length - num_new, length, device=query.device)[:, None]
    mask = torch.arange(length, device=query.device) <= ends
    out = scaled_dot_product_attention(query, keys, values, attn_mask=mask, enable_gqa=True)
    return out.transpose(1, 2).flatten(0, 1)


def triton(batch: Batch, metadata: CommonAttentionMetadata) -> Tensor:
    """VLLM's own paged attention in Triton."""
    from vllm.v1.attention.ops.triton_unified_attention import unified_attention

    out = torch.empty_like(batch.query)
    unified_attention(
        q=batch.query,
        k=batch.key_cache,
        v=batch.value_cache,
        out=out,
        cu_seqlens_q=metadata.query_start_loc,
        max_seqlen_q=metadata.max_query_len,
        seqused_k=metadata.seq_lens,
        max_seqlen_k=metadata.max_seq_len,
        softmax_scale=batch.query.shape[-1] ** -0.5,
        causal=True,
        window_size=(-1, -1),
        block_table=metadata.block_table_tensor,
        softcap=0,
        q_descale=None,
        k_descale=None,
        v_descale=None,
    )
    return out


def flash_attention(batch: Batch, metadata: CommonAttentionMetadata) -> Tensor:
    """FlashAttention over pages, in the version that vLLM picks for this GPU."""
    from vllm.v1.attention.backends.fa_utils import flash_attn_varlen_func, get_flash_attn_version

    out: Tensor = flash_attn_varlen_func(
        q=batch.query,
        k=batch.key_cache,
        v=batch.value_cache,
        max_seqlen_q=metadata.max_query_len,
        cu_seqlens_q=metadata.query_start_loc,
        max_seqlen_k=metadata.max_seq_len,
        seqused_k=metadata.seq_lens,
        softmax_scale=batch.query.shape[-1] ** -0.5,
        causal=True,
        block_table=metadata.block_table_tensor,
        fa_version=get_flash_attn_version(),
    )
    return out


KERNELS: dict[str, Kernel] = {"sdpa": sdpa, "triton": triton, "flash_attention": flash_attention}


def check(kernel: Kernel, shape: Shape, context: int, num_new: int, plan: Plan) -> dict[str, Any]:
    """Largest distance of a kernel's bounded output from the reference, and from no bound."""
    batch = make_batch(shape, context, num_new, plan, is_bounded=True)
    compacted = compactor(shape, plan).compact(batch.metadata)
    out = kernel(batch, compacted).float()
    wanted = reference(batch, num_new, plan.retention)
    worst = float((out - wanted).abs().max())
    unbounded = float((out - reference(batch, num_new, Retention())).abs().max())
    # NaN from a freed page is no number below the tolerance.
    return {
        "context_tokens": context,
        "new_tokens": num_new,
        "kept_tokens": int(compacted.seq_lens[0]),
        "worst_error": worst,
        "distance_from_full_attention": unbounded,
        "passed": worst <= TOLERANCE[plan.dtype],
    }


def seconds_a_call(call: Callable[[], Any], plan: Plan) -> float:
    """Mean over calls in a row, by the device's clock."""
    for _ in range(NUM_WARM_UP):
        call()
    num_calls = NUM_TIMED if plan.device == "cuda" else 3
    if plan.device != "cuda":
        started_s = time.perf_counter()
        for _ in range(num_calls):
            call()
        return (time.perf_counter() - started_s) / num_calls
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(num_calls):
        call()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / 1e3 / num_calls


def timing(kernel: Kernel, shape: Shape, context: int, plan: Plan) -> dict[str, Any]:
    """Milliseconds of one layer's decode step, without the bound and with it, and of compaction."""
    whole = make_batch(shape, context, 1, plan, is_bounded=False)
    compact = compactor(shape, plan)
    compacted = compact.compact(whole.metadata)
    return {
        "context_tokens": context,
        "sessions": plan.num_sessions,
        "unbounded_ms": seconds_a_call(lambda: kernel(whole, whole.metadata), plan) * 1e3,
        "bounded_ms": seconds_a_call(lambda: kernel(whole, compacted), plan) * 1e3,
        "compaction_ms": seconds_a_call(lambda: compact.compact(whole.metadata), plan) * 1e3,
    }


def missing(name: str, plan: Plan) -> str | None:
    """Why a kernel cannot be asked to run here; None if it can."""
    if name == "sdpa":
        return None
    if plan.device != "cuda":
        return f"needs a GPU, and this is --device {plan.device}"
    if name == "flash_attention":
        from vllm.v1.attention.backends.fa_utils import get_flash_attn_version

        return None if get_flash_attn_version() else "no FlashAttention for this GPU in this vLLM"
    from vllm.triton_utils import HAS_TRITON

    return None if HAS_TRITON else "Triton is not installed"


def results(plan: Plan) -> Iterator[dict[str, Any]]:
    """One entry a model, kernel and context: a check of decode, of a chunk, or a timing."""
    started_s = time.monotonic()
    for model, num_query_heads in NUM_QUERY_HEADS.items():
        kv = compose([f"model={model}"]).model.kv
        shape = Shape(num_query_heads, kv.num_kv_heads, kv.head_size)
        for name, kernel in KERNELS.items():
            of = {"model": model, "kernel": name, "num_layers": kv.num_layers, **asdict(shape)}
            if why := missing(name, plan):
                yield {**of, "kind": "skipped", "why": why}
                continue
            for context in plan.contexts:
                if time.monotonic() - started_s > plan.limit_s:
                    why = f"{context} tokens: {plan.limit_s:.0f} s were over"
                    yield {**of, "kind": "skipped", "why": why}
                    continue
                try:
                    for num_new in (1, plan.chunk_tokens):
                        yield {**of, "kind": "check"} | check(kernel, shape, context, num_new, plan)
                    yield {**of, "kind": "timing"} | timing(kernel, shape, context, plan)
                except torch.OutOfMemoryError:
                    yield {**of, "kind": "skipped", "why": f"{context} tokens: out of memory"}
                except Exception as error:  # noqa: BLE001  # the entry says it, and it is a failure
                    why = f"{context} tokens: {type(error).__name__}: {str(error)[:200]}"
                    yield {**of, "kind": "check", "passed": False, "why": why}


def main() -> int:
    """Run, print one line an entry, write them all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--quick", action="store_true", help="short contexts, few sessions")
    parser.add_argument("--out", type=Path, default=Path("results/gpu_check.json"))
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("no CUDA device: --device cpu --quick runs the same code without one")
    base = QUICK if options.quick else FULL
    dtype = torch.bfloat16 if options.device == "cuda" else torch.float32
    plan = Plan(**{**vars(base), "device": options.device, "dtype": dtype})
    entries = []
    for entry in results(plan):
        entries.append(entry)
        print(json.dumps(entry), flush=True)
    device = torch.cuda.get_device_name() if plan.device == "cuda" else "cpu"
    config = {**vars(plan), "dtype": str(dtype), "retention": asdict(plan.retention)}
    origin = provenance(config, command=sys.argv, evidence=f"kernels on {device}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    document = {"provenance": origin, "device": device, "entries": entries}
    options.out.write_text(json.dumps(document, indent=2) + "\n")
    failed = [entry for entry in entries if entry.get("passed") is False]
    num_checks = sum(entry["kind"] == "check" for entry in entries)
    num_skipped = sum(entry["kind"] == "skipped" for entry in entries)
    print(f"{num_checks} checks, {len(failed)} failed, {num_skipped} skipped: {options.out}")
    return 1 if failed or not num_checks else 0


if __name__ == "__main__":
    sys.exit(main())
