from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionMetadataBuilder,
    CommonAttentionMetadata,
)
from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend
from vllm.v1.attention.backends.flash_attn import FlashAttentionBackend
from vllm.v1.attention.backends.triton_attn import TritonAttentionBackend

from harness.vllm_plugin.backend import Compactor, bounded, is_bounded
from harness.vllm_plugin.spec import SinkWindowSpec

SPEC = SinkWindowSpec(
    block_size=4,
    sliding_window=8,
    sink_tokens=4,
    num_kv_heads=1,
    head_size=32,
    dtype=torch.float32,
)
OLD_ROW = [9, 0, 0, 3, 4, 5, 0, 0]
COMPACT_OLD_ROW = [9, 3, 4, 5, 0, 0, 0, 0]
YOUNG_ROW = [6, 7, 0, 0, 0, 0, 0, 0]


def batch(rows, seq_lens, query_lens, **changes):
    """A CommonAttentionMetadata as the model runner makes it."""
    starts = torch.tensor([0, *query_lens]).cumsum(0).to(torch.int32)
    fields = {
        "query_start_loc": starts,
        "query_start_loc_cpu": starts.clone(),
        "seq_lens": torch.tensor(seq_lens, dtype=torch.int32),
        "seq_lens_cpu_upper_bound": torch.tensor(seq_lens, dtype=torch.int32),
        "num_reqs": len(seq_lens),
        "num_actual_tokens": sum(query_lens),
        "max_query_len": max(query_lens),
        "max_seq_len": max(seq_lens),
        "block_table_tensor": torch.tensor(rows, dtype=torch.int32),
        "slot_mapping": torch.arange(sum(query_lens)),
        "positions": torch.arange(sum(query_lens)),
        **changes,
    }
    return CommonAttentionMetadata(**fields)


def old_and_young():
    return batch([OLD_ROW, YOUNG_ROW], [23, 6], [3, 1])


class RecordingBuilder(AttentionMetadataBuilder):
    """Stands where a backend's builder would, and shows what reaches it."""

    supports_update_block_table = True

    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)

    def build(self, common_prefix_len, common_attn_metadata, fast_build=False):
        return common_prefix_len, common_attn_metadata, fast_build


class RecordingBackend(AttentionBackend):
    @staticmethod
    def get_name():
        return "RECORDING"

    @staticmethod
    def get_impl_cls():
        return object

    @staticmethod
    def get_builder_cls():
        return RecordingBuilder


def bounded_builder(backend=RecordingBackend):
    config = SimpleNamespace(scheduler_config=SimpleNamespace(max_num_seqs=4))
    return bounded(backend).get_builder_cls()(SPEC, ["layer.0"], config, torch.device("cpu"))


@pytest.mark.parametrize(
    "backend",
    [CPUAttentionBackend, TritonAttentionBackend, FlashAttentionBackend, RecordingBackend],
    ids=lambda backend: backend.__name__,
)
def test_any_backend_is_bounded_without_touching_its_kernel(backend):
    derived = bounded(backend)
    assert issubclass(derived, backend)
    assert derived.get_impl_cls() is backend.get_impl_cls()
    assert derived.get_name() == backend.get_name()
    assert issubclass(derived.get_builder_cls(), backend.get_builder_cls())
    assert is_bounded(derived)
    assert not is_bounded(backend)


def test_bounding_twice_gives_the_same_class():
    derived = bounded(CPUAttentionBackend)
    assert bounded(CPUAttentionBackend) is derived
    assert bounded(derived) is derived
    assert derived.full_cls_name() != bounded(TritonAttentionBackend).full_cls_name()


def test_variants_that_would_bypass_compaction_are_switched_off():
    assert FlashAttentionBackend.get_builder_cls().supports_update_block_table
    for backend in (FlashAttentionBackend, RecordingBackend):
        builder = bounded(backend).get_builder_cls()
        assert not builder.supports_update_block_table
        assert not builder.supports_draft_decode_metadata_update


@pytest.mark.parametrize(
    "build",
    [
        lambda builder, metadata: builder.build(7, metadata),
        lambda builder, metadata: builder.build_for_cudagraph_capture(metadata),
        lambda builder, metadata: builder.build_for_drafting(metadata, 0),
    ],
    ids=["step", "graph capture", "drafting"],
)
def test_every_build_variant_sees_compacted_metadata_and_no_shared_prefix(build):
    common_prefix_len, seen, _ = build(bounded_builder(), old_and_young())
    assert common_prefix_len == 0
    assert seen.seq_lens.tolist() == [15, 6]
    assert seen.block_table_tensor.tolist() == [COMPACT_OLD_ROW, YOUNG_ROW]


@pytest.fixture(params=[True, False], ids=["on the host", "on a device"])
def on_host(request):
    """Both ways to compact; tensors of this process stand in for a device's."""
    return request.param


def test_host_side_lengths_follow_and_caches_do_not_survive(on_host):
    metadata = old_and_young()
    metadata.compute_num_computed_tokens()
    metadata._token_to_req_indices_cache = torch.zeros(4, dtype=torch.int32)
    seen = Compactor(SPEC, max_num_reqs=4, on_host=on_host).compact(metadata)
    assert seen.seq_lens_cpu_upper_bound.tolist() == [15, 6]
    # One sink block, a window of 8 that may start inside a block, and a chunk of 3.
    assert seen.max_seq_len == 4 + 7 + 3 + 3
    assert seen._token_to_req_indices_cache is None
    assert seen.compute_num_computed_tokens().tolist() == [12, 5]


def test_where_tokens_are_written_and_which_positions_they_have_does_not_change(on_host):
    metadata = old_and_young()
    before = {
        name: getattr(metadata, name).clone()
        for name in ("seq_lens", "block_table_tensor", "seq_lens_cpu_upper_bound")
    }
    seen = Compactor(SPEC, max_num_reqs=4, on_host=on_host).compact(metadata)
    assert seen.slot_mapping is metadata.slot_mapping
    assert seen.positions is metadata.positions
    assert seen.query_start_loc is metadata.query_start_loc
    # Other groups of layers read the same tensors.
    for name, value in before.items():
        assert torch.equal(getattr(metadata, name), value), name


def test_lengths_that_only_the_device_knows_are_compacted_there(on_host):
    seen = Compactor(SPEC, max_num_reqs=4, on_host=on_host).compact(
        batch([OLD_ROW], [23], [3], seq_lens_cpu_upper_bound=None)
    )
    assert seen.seq_lens_cpu_upper_bound is None
    assert seen.seq_lens.tolist() == [15]


def test_a_captured_graph_finds_later_steps_at_the_addresses_of_its_capture():
    compactor = Compactor(SPEC, max_num_reqs=4, on_host=False)
    padding = [0] * 8
    captured = compactor.compact(batch([padding] * 4, [0] * 4, [1] * 4))
    replayed = compactor.compact(old_and_young())
    for name in ("seq_lens", "block_table_tensor"):
        then, now = getattr(captured, name), getattr(replayed, name)
        assert then.data_ptr() == now.data_ptr()
        assert then.stride() == now.stride()
        assert torch.equal(then[:2], now)
    assert replayed.seq_lens.tolist() == [15, 6]


def test_a_batch_that_lost_nothing_is_handed_on_as_it_is_where_there_are_no_graphs():
    young = batch([YOUNG_ROW], [15], [1])
    assert Compactor(SPEC, max_num_reqs=4, on_host=True).compact(young) is young
    old = batch([[9, 0, 3, 4, 0, 0, 0, 0]], [16], [1])
    seen = Compactor(SPEC, max_num_reqs=4, on_host=True).compact(old)
    assert seen.seq_lens.tolist() == [12]


def test_a_graph_gets_a_batch_that_lost_nothing_in_its_buffers():
    compactor = Compactor(SPEC, max_num_reqs=4, on_host=False)
    old = compactor.compact(old_and_young())
    young = compactor.compact(batch([YOUNG_ROW], [6], [1]))
    assert young.seq_lens.data_ptr() == old.seq_lens.data_ptr()
    assert young.block_table_tensor.tolist() == [YOUNG_ROW]
    assert young.seq_lens.tolist() == [6]
    again = compactor.compact(old_and_young())
    assert again.block_table_tensor.tolist() == [COMPACT_OLD_ROW, YOUNG_ROW]


def as_lists(metadata):
    return [
        getattr(metadata, name).tolist()
        for name in ("seq_lens", "block_table_tensor", "seq_lens_cpu_upper_bound")
    ]


@settings(deadline=None, max_examples=60)
@given(
    steps=st.lists(
        st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), min_size=1, max_size=4),
        min_size=2,
        max_size=6,
    )
)
def test_steps_of_any_size_one_after_another_leave_nothing_behind(steps):
    kept = {flag: Compactor(SPEC, max_num_reqs=4, on_host=flag) for flag in (True, False)}
    for step in steps:
        seq_lens = [computed + new for computed, new in step]
        rows = [
            [100 * number + place for place in range(1, 14)] for number in range(1, len(step) + 1)
        ]
        metadata = batch(rows, seq_lens, [new for _, new in step])
        for flag, compactor in kept.items():
            seen = compactor.compact(metadata)
            fresh = Compactor(SPEC, max_num_reqs=4, on_host=flag).compact(metadata)
            assert as_lists(seen) == as_lists(fresh)
            for number, length in enumerate(seen.seq_lens.tolist()):
                dropped = (seq_lens[number] - length) // 4
                wanted = [rows[number][0], *rows[number][1 + dropped :]]
                places = -(-length // 4)
                assert seen.block_table_tensor[number, :places].tolist() == wanted[:places]
                assert seen.max_seq_len >= length


def test_kernel_blocks_smaller_than_the_managers_never_reach_a_freed_block(on_host):
    # The manager keeps blocks of 4; this kernel counts in halves, so each entry stands twice.
    halves = [18, 19, 0, 0, 0, 0, 6, 7, 8, 9, 10, 11]
    compactor = Compactor(SPEC.copy_with_new_block_size(2), max_num_reqs=1, on_host=on_host)
    seen = compactor.compact(batch([halves], [23], [3]))
    # Token 13 is the first of the window: block 6 of the halves, and 8 tokens fewer before it.
    assert seen.seq_lens.tolist() == [15]
    assert seen.block_table_tensor[0, :8].tolist() == [18, 19, 6, 7, 8, 9, 10, 11]
