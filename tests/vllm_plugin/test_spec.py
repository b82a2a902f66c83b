"""vLLM's real cache manager and block pool under random traffic of bounded sessions."""

import pickle
import random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from vllm import SamplingParams
from vllm.v1.core.single_type_kv_cache_manager import SlidingWindowManager
from vllm.v1.kv_cache_interface import (
    FullAttentionSpec,
    SlidingWindowSpec,
    UniformTypeKVCacheSpecs,
)
from vllm.v1.kv_cache_spec_registry import KVCacheSpecRegistry
from vllm.v1.request import Request

from harness.core.errors import ConfigError
from harness.kv.retention import Retention, live_blocks, num_sink_blocks, plateau_blocks
from harness.vllm_plugin.spec import (
    SinkWindowManager,
    SinkWindowSpec,
    bounded_spec,
    register_spec,
)
from tests.vllm_plugin.stand_ins import BLOCK, LAYOUT, cache_manager, spec


def session(name, num_tokens=1):
    sampling = SamplingParams(max_tokens=1)
    return Request(name, [1] * num_tokens, sampling, None)


@settings(max_examples=40, stateful_step_count=60, deadline=None)
class BoundedTraffic(RuleBasedStateMachine):
    """Sessions that arrive, compute chunks with up to one step in flight, are preempted and end."""

    IN_FLIGHT = 16

    @initialize(
        window=st.integers(BLOCK, 5 * BLOCK),
        sinks=st.integers(0, 3 * BLOCK),
        pool=st.integers(8, 60),
    )
    def start(self, window, sinks, pool):
        self.retention = Retention(window_tokens=window, sink_tokens=sinks)
        self.manager = cache_manager(spec(window, sinks), num_blocks=pool, in_flight=self.IN_FLIGHT)
        self.group = self.manager.coordinator.single_type_managers[0]
        self.sessions = []
        self.sinks = {}
        self.started = 0

    def held(self, request):
        return [block for block in self.group.req_to_blocks.get(request.request_id, ())]

    @precondition(lambda self: len(self.sessions) < 6)
    @rule()
    def arrive(self):
        self.started += 1
        self.sessions.append(session(f"s{self.started}"))

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), length=st.integers(1, IN_FLIGHT))
    def compute(self, data, length):
        request = data.draw(st.sampled_from(self.sessions))
        length = min(length, self.IN_FLIGHT - request.num_in_flight_tokens)
        if length < 1:
            return
        if self.manager.allocate_slots(request, length) is None:
            return
        settled = request.num_computed_tokens - request.num_in_flight_tokens
        new = request.num_in_flight_tokens + length
        held = sum(not block.is_null for block in self.held(request))
        assert held == live_blocks(settled, self.retention, BLOCK, num_new_tokens=new)
        request.num_computed_tokens += length
        request.num_in_flight_tokens += length

    @precondition(lambda self: self.sessions)
    @rule(data=st.data())
    def settle(self, data):
        data.draw(st.sampled_from(self.sessions)).num_in_flight_tokens = 0

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), ends=st.booleans())
    def preempt_or_end(self, data, ends):
        request = data.draw(st.sampled_from(self.sessions))
        self.manager.free(request)
        self.sinks.pop(request.request_id, None)
        request.num_computed_tokens = request.num_in_flight_tokens = 0
        if ends:
            self.sessions.remove(request)

    @invariant()
    def freed_and_held_blocks_are_all_blocks(self):
        held = [
            block.block_id for r in self.sessions for block in self.held(r) if not block.is_null
        ]
        assert len(held) == len(set(held))
        pool = self.manager.block_pool
        # One block is the null block, which nobody holds and which is never free.
        assert len(held) + pool.get_num_free_blocks() == pool.num_gpu_blocks - 1

    @invariant()
    def sinks_are_never_freed_nor_moved(self):
        for request in self.sessions:
            pinned = self.held(request)[: num_sink_blocks(self.retention, BLOCK)]
            assert not any(block.is_null for block in pinned)
            before = self.sinks.get(request.request_id, [])
            self.sinks[request.request_id] = [block.block_id for block in pinned]
            assert self.sinks[request.request_id][: len(before)] == before

    @invariant()
    def no_session_holds_more_than_it_was_admitted_for(self):
        limit = self.group.max_admission_blocks_per_request
        assert limit == plateau_blocks(
            self.retention, BLOCK, self.IN_FLIGHT, max_model_len=self.manager.max_model_len
        )
        for request in self.sessions:
            assert sum(not block.is_null for block in self.held(request)) <= limit


TestBoundedTraffic = BoundedTraffic.TestCase


@pytest.mark.parametrize("seed", range(10))
def test_every_block_is_accounted_for_over_a_thousand_steps_of_random_traffic(seed):
    rng = random.Random(seed)
    retention = Retention(
        window_tokens=rng.randint(BLOCK, 5 * BLOCK), sink_tokens=rng.randint(0, 3 * BLOCK)
    )
    in_flight = 16
    limit = plateau_blocks(retention, BLOCK, in_flight)
    manager = cache_manager(
        spec(retention.window_tokens, retention.sink_tokens),
        num_blocks=2 * limit + 1,
        in_flight=in_flight,
    )
    (group,) = manager.coordinator.single_type_managers
    assert group.max_admission_blocks_per_request == limit
    sessions, refused, longest = {}, 0, 0
    for step in range(1000):
        if len(sessions) < 6 and rng.random() < 0.1:
            sessions[f"s{step}"] = session(f"s{step}")
        # One step of an engine: some sessions compute, their last step being settled or not.
        for request in rng.sample(list(sessions.values()), rng.randint(0, len(sessions))):
            if rng.random() < 0.8:
                request.num_in_flight_tokens = 0
            length = rng.choice([1, 1, 1, rng.randint(1, in_flight)])
            if request.num_in_flight_tokens + length > in_flight:
                continue
            if manager.allocate_slots(request, length) is None:
                refused += 1
                continue
            settled = request.num_computed_tokens - request.num_in_flight_tokens
            request.num_in_flight_tokens += length
            request.num_computed_tokens += length
            longest = max(longest, request.num_computed_tokens)
            held = held_blocks(group, request)
            new = request.num_in_flight_tokens
            assert held == live_blocks(settled, retention, BLOCK, num_new_tokens=new)
        for request in [r for r in sessions.values() if rng.random() < 0.01]:
            manager.free(request)
            del sessions[request.request_id]
        held = [held_blocks(group, request) for request in sessions.values()]
        assert all(count <= limit for count in held)
        # One block is the null block, which nobody holds and which is never free.
        pool = manager.block_pool
        assert sum(held) + pool.get_num_free_blocks() == pool.num_gpu_blocks - 1
    assert refused
    assert longest > 4 * retention.window_tokens


def held_blocks(group, request):
    return sum(not block.is_null for block in group.req_to_blocks.get(request.request_id, ()))


@pytest.mark.parametrize("window", [4, 7, 8, 21])
@pytest.mark.parametrize("longest", [6, 24, 10_000])
def test_without_sinks_the_spec_and_its_manager_are_the_plain_window(window, longest):
    plain = SlidingWindowSpec(block_size=BLOCK, sliding_window=window, **LAYOUT)
    ours = spec(window, 0)
    for in_flight in (1, 5, 64):
        assert ours.max_admission_blocks_per_request(in_flight, longest) == (
            plain.max_admission_blocks_per_request(in_flight, longest)
        )
    left, right = cache_manager(ours), cache_manager(plain)
    mine, theirs = session("a"), session("a")
    for length in (9, 1, 1, 16, 3, 1, 1, 1, 12):
        for manager, request in ((left, mine), (right, theirs)):
            manager.allocate_slots(request, length)
            request.num_computed_tokens += length
        assert left.get_block_ids("a") == right.get_block_ids("a")


@pytest.mark.parametrize("longest", [1, 15, 16, 40, 10_000])
@pytest.mark.parametrize("sinks", [0, 1, 9])
def test_vllm_admits_by_the_plateau_of_the_block_arithmetic(longest, sinks):
    retention = Retention(window_tokens=10, sink_tokens=sinks)
    for in_flight in (1, 6, 64):
        assert spec(10, sinks).max_admission_blocks_per_request(in_flight, longest) == (
            plateau_blocks(retention, BLOCK, in_flight, max_model_len=longest)
        )


def test_a_full_attention_spec_keeps_its_layout_when_it_is_bounded():
    full = FullAttentionSpec(block_size=BLOCK, head_size_v=16, page_size_padded=8192, **LAYOUT)
    bounded = bounded_spec(full, Retention(window_tokens=8, sink_tokens=3))
    assert bounded.page_size_bytes == full.page_size_bytes
    assert bounded.head_size_v == 16
    assert bounded.retention == Retention(window_tokens=8, sink_tokens=3)
    assert pickle.loads(pickle.dumps(bounded)) == bounded


def test_layers_share_a_block_table_only_with_equal_windows_and_sinks():
    register_spec()
    wide_heads = SinkWindowSpec(
        block_size=BLOCK, sliding_window=8, sink_tokens=4, **{**LAYOUT, "head_size": 64}
    )
    assert UniformTypeKVCacheSpecs.is_uniform_type({"a": spec(8, 4), "b": wide_heads})
    assert not UniformTypeKVCacheSpecs.is_uniform_type({"a": spec(8, 4), "b": spec(8, 5)})
    assert not UniformTypeKVCacheSpecs.is_uniform_type({"a": spec(8, 4), "b": spec(9, 4)})
    plain = SlidingWindowSpec(block_size=BLOCK, sliding_window=8, **LAYOUT)
    assert not UniformTypeKVCacheSpecs.is_uniform_type({"a": spec(8, 4), "b": plain})


def test_registering_twice_leaves_one_manager_and_the_built_in_ones():
    register_spec()
    register_spec()
    assert KVCacheSpecRegistry.get_manager_class(spec(8, 4)) is SinkWindowManager
    plain = SlidingWindowSpec(block_size=BLOCK, sliding_window=8, **LAYOUT)
    assert KVCacheSpecRegistry.get_manager_class(plain) is SlidingWindowManager


def test_a_window_below_the_block_size_vllm_settled_on_is_refused():
    with pytest.raises(ConfigError, match=r"window_tokens=8 must be at least block_size_tokens=16"):
        cache_manager(spec(8, 4, block=16))


def test_sinks_with_prefix_caching_are_refused_and_a_plain_window_is_not():
    with pytest.raises(ConfigError, match="set enable_prefix_caching=False"):
        cache_manager(spec(8, 4), caching=True)
    cache_manager(spec(8, 0), caching=True)


def test_a_session_is_admitted_by_its_plateau_not_by_its_length():
    manager = cache_manager(spec(8, 4), num_blocks=9, in_flight=8)
    # 8 usable blocks hold the plateau of 6, though 200 tokens would need 50.
    assert manager.allocate_slots(session("long", 200), 8, full_sequence_must_fit=True)
    # The first holds 2 by now: a second plateau of 6 fits, a third does not.
    assert manager.allocate_slots(session("second", 200), 8, full_sequence_must_fit=True)
    assert manager.allocate_slots(session("third", 200), 8, full_sequence_must_fit=True) is None
