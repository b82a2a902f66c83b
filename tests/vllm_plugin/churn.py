"""Sessions that come, talk and go, or are cut off in mid-frame, in one engine.

Half are streaming sessions of a few chunks, half ordinary requests; both are in every step. Half of
all are aborted after a random number of steps, whatever they are doing then.
"""

import random
import time

from vllm import SamplingParams
from vllm.sampling_params import RequestOutputKind
from vllm.v1.request import RequestStatus

CHUNK_TOKENS, ANSWER_TOKENS = 17, 4
NUM_AT_ONCE = 12


class Session:
    """What one session still wants to do."""

    def __init__(self, name, rng):
        self.name = name
        self.is_stream = rng.random() < 0.5
        self.turns_left = rng.randint(1, 9) if self.is_stream else 1
        self.max_tokens = ANSWER_TOKENS if self.is_stream else rng.randint(4, 40)
        self.steps_until_abort = rng.randint(1, 20) if rng.random() < 0.5 else None
        self.said = 0
        self.expected = self.turns_left * self.max_tokens


class Churn:
    """Drives an in-process engine core, which answers for every block of its pool."""

    def __init__(self, llm_engine, *, seed):
        self._rng = random.Random(seed)
        self._inputs = llm_engine.input_processor
        self._tasks = llm_engine.get_supported_tasks()
        self._core = llm_engine.engine_core
        self._scheduler = self._core.engine_core.scheduler
        self._pool = self._scheduler.kv_cache_manager.block_pool
        self._manager = self._scheduler.kv_cache_manager.coordinator.single_type_managers[0]
        self._seen = {
            "ended": 0,
            "streams": 0,
            "aborted_in_mid_frame": 0,
            "aborted_paused_or_waiting": 0,
            "blocks_kept_by_aborted": 0,
            "wrong_answers": 0,
            "most_held_by_one": 0,
            "mixed_steps": 0,
        }

    def run(self, num_sessions):
        """Let `num_sessions` live and end; returns counts, and the pool before and after."""
        before = self._pool.get_num_free_blocks()
        started, live = 0, {}
        while started < num_sessions or live:
            while started < num_sessions and len(live) < NUM_AT_ONCE:
                session = Session(f"session-{started}", self._rng)
                live[session.name] = session
                started += 1
                self._seen["streams"] += session.is_stream
                self._speak(session)
            self._step(live)
            for session in [s for s in live.values() if s.steps_until_abort is not None]:
                session.steps_until_abort -= 1
                if session.steps_until_abort <= 0:
                    self._abort(session)
                    del live[session.name]
        return {
            **self._seen,
            "free_before": before,
            "free_after": self._pool.get_num_free_blocks(),
            "requests_left": len(self._scheduler.requests),
            "tables_left": sum(map(bool, self._manager.req_to_blocks.values())),
        }

    def _speak(self, session):
        ids = [self._rng.randint(2, 250) for _ in range(CHUNK_TOKENS)]
        self._send(session, ids, resumable=session.is_stream)
        session.turns_left -= 1

    def _send(self, session, ids, *, resumable):
        sampling = SamplingParams(
            max_tokens=session.max_tokens,
            temperature=0.0,
            ignore_eos=True,
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
        )
        request = self._inputs.process_inputs(
            request_id=session.name,
            prompt={"prompt_token_ids": ids},
            params=sampling,
            supported_tasks=self._tasks,
            arrival_time=time.time(),
            resumable=resumable,
        )
        request.external_req_id = session.name
        self._core.add_request(request)

    def _step(self, live):
        outputs = self._core.get_output().outputs
        running = {live[r.request_id].is_stream for r in self._scheduler.running}
        self._seen["mixed_steps"] += len(running) == 2
        for name in live:
            held = self._held(name)
            self._seen["most_held_by_one"] = max(self._seen["most_held_by_one"], held)
        for output in outputs:
            session = live.get(output.request_id)
            if session is None:
                continue
            session.said += len(output.new_token_ids)
            if output.finish_reason is None:
                continue
            if session.turns_left:
                self._speak(session)
                continue
            if session.is_stream:
                # No chunk follows: what vLLM's own client sends to end a session.
                self._send(session, [1], resumable=False)
            del live[session.name]
            self._seen["ended"] += 1
            self._seen["wrong_answers"] += session.said != session.expected

    def _abort(self, session):
        request = self._scheduler.requests[session.name]
        is_running = request.status == RequestStatus.RUNNING
        self._seen["aborted_in_mid_frame" if is_running else "aborted_paused_or_waiting"] += 1
        held, free = self._held(session.name), self._pool.get_num_free_blocks()
        self._core.abort_requests([session.name])
        returned = self._pool.get_num_free_blocks() - free
        self._seen["blocks_kept_by_aborted"] += held - returned + self._held(session.name)

    def _held(self, name):
        return sum(not block.is_null for block in self._manager.req_to_blocks.get(name, ()))
