"""A session's features: stripped once, as vLLM would at every frame, and given back."""

import pickle
from types import SimpleNamespace

import pytest
import torch
from vllm.multimodal.inputs import (
    MultiModalBatchedField,
    MultiModalFeatureSpec,
    MultiModalFieldElem,
    MultiModalKwargsItem,
    PlaceholderRange,
)
from vllm.multimodal.utils import strip_covered_mm_data
from vllm.v1.core.sched import output as scheduler_output

from harness.core.errors import ConfigError
from harness.vllm_plugin.config import HOST_KEY
from harness.vllm_plugin.host_bound import HostBound, SessionFeatures

TOKENS_A_FEATURE = 4


def feature(number):
    """Feature `number` of a session: a tensor, and a size that M-RoPE models keep on the CPU."""
    item = MultiModalKwargsItem(
        {
            "samples": MultiModalFieldElem(torch.full((8,), number), MultiModalBatchedField()),
            "size": MultiModalFieldElem(
                torch.tensor(number), MultiModalBatchedField(keep_on_cpu=True)
            ),
        }
    )
    place = PlaceholderRange(offset=number * TOKENS_A_FEATURE, length=TOKENS_A_FEATURE)
    return MultiModalFeatureSpec(item, "audio", f"feature-{number}", place)


def features(count):
    return [feature(number) for number in range(count)]


@pytest.mark.parametrize("uses_mrope", [False, True])
def test_what_is_sent_is_what_vllm_would_send_at_every_age(uses_mrope):
    kept, stock = SessionFeatures([]), []
    for number in range(6):
        kept.append(feature(number))
        stock.append(feature(number))
        # Half of the feature before the last is not computed yet.
        computed = number * TOKENS_A_FEATURE - TOKENS_A_FEATURE // 2
        kept.put_away(computed, uses_mrope=uses_mrope)
        assert kept == strip_covered_mm_data(stock, computed, uses_mrope=uses_mrope)
    assert len(kept.shelf) == 4


def test_a_feature_is_stripped_once():
    kept = SessionFeatures(features(3))
    kept.put_away(8, uses_mrope=False)
    first = kept[0]
    kept.append(feature(3))
    kept.put_away(12, uses_mrope=False)
    assert kept[0] is first
    assert [entry.data is None for entry in kept] == [True, True, True, False]


def test_a_preempted_session_has_all_its_data_again():
    kept = SessionFeatures(features(3))
    kept.put_away(8, uses_mrope=True)
    kept.bring_back()
    assert kept == features(3)
    assert len(kept.shelf) == 0
    kept.put_away(12, uses_mrope=True)
    kept.bring_back()
    assert kept == features(3)


def test_what_came_without_data_stays_without():
    kept = SessionFeatures(features(2))
    kept[0].data = None
    kept.put_away(8, uses_mrope=False)
    kept.bring_back()
    assert kept[0].data is None
    assert kept[1] == feature(1)


def test_another_process_gets_a_plain_list_without_the_shelf():
    kept = SessionFeatures(features(3))
    kept.put_away(8, uses_mrope=False)
    sent = pickle.loads(pickle.dumps(kept))
    assert type(sent) is list
    assert sent == kept


class StockScheduler:
    """The methods of vLLM's scheduler that the bound goes around."""

    model_uses_mrope = False

    def __init__(self, additional_config, kv_transfer_config=None):
        self.vllm_config = SimpleNamespace(
            additional_config=additional_config, kv_transfer_config=kv_transfer_config
        )

    def _update_request_as_session(self, session, update):
        session.mm_features.extend(update)

    def _preempt_request(self, request, timestamp):
        request.num_computed_tokens = 0


class BoundScheduler(HostBound, StockScheduler):
    pass


@pytest.fixture
def stock_function(monkeypatch):
    """Undo the wrapping afterwards."""
    original = scheduler_output.strip_covered_mm_data
    monkeypatch.setattr(scheduler_output, "strip_covered_mm_data", original)


@pytest.mark.usefixtures("stock_function")
def test_a_scheduler_puts_away_at_each_chunk_and_brings_back_at_preemption():
    scheduler = BoundScheduler({HOST_KEY: True})
    session = SimpleNamespace(mm_features=features(1), num_computed_tokens=TOKENS_A_FEATURE)
    scheduler._update_request_as_session(session, [feature(1)])
    sent = scheduler_output.strip_covered_mm_data(session.mm_features, TOKENS_A_FEATURE)
    assert sent is session.mm_features
    assert [entry.data is None for entry in sent] == [True, False]
    scheduler._preempt_request(session, 0.0)
    sent = scheduler_output.strip_covered_mm_data(session.mm_features, 0)
    assert sent == features(2)


@pytest.mark.usefixtures("stock_function")
def test_lists_of_other_schedulers_are_stripped_as_ever():
    BoundScheduler({HOST_KEY: True})
    BoundScheduler({HOST_KEY: True})
    sent = scheduler_output.strip_covered_mm_data(features(2), TOKENS_A_FEATURE)
    assert sent == strip_covered_mm_data(features(2), TOKENS_A_FEATURE)


def test_it_can_be_switched_off():
    scheduler = BoundScheduler({HOST_KEY: False})
    session = SimpleNamespace(mm_features=features(1), num_computed_tokens=TOKENS_A_FEATURE)
    scheduler._update_request_as_session(session, [feature(1)])
    assert session.mm_features == features(2)


@pytest.mark.parametrize(
    ("config", "connector", "words"),
    [
        ({HOST_KEY: "yes"}, None, "must be True or False"),
        ({HOST_KEY: True}, object(), "KV connector"),
    ],
)
def test_what_it_cannot_be_kept_with_is_refused(config, connector, words):
    with pytest.raises(ConfigError, match=words):
        BoundScheduler(config, connector)
