"""Which class an engine's scheduler is made of, and what it says at start-up."""

import logging
from types import SimpleNamespace

import pytest
from vllm.config import SchedulerConfig
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler

from harness.core.errors import EngineError
from harness.vllm_plugin import scheduler as plugin
from harness.vllm_plugin.host_bound import HostBound

BOUND = {"metronome": {"window_tokens": 64, "sink_tokens": 4}}


@pytest.fixture(autouse=True)
def no_engine(monkeypatch):
    """Schedulers are made of their configuration alone."""

    def make(self, vllm_config):
        self.vllm_config = vllm_config

    monkeypatch.setattr(Scheduler, "__init__", make)
    monkeypatch.setattr(AsyncScheduler, "__init__", make)


@pytest.fixture
def report(monkeypatch):
    found = SimpleNamespace(sentence=lambda: "what is in force")
    monkeypatch.setattr(plugin, "inspect_scheduler", lambda scheduler: found)


def made(chosen, additional_config):
    config = SimpleNamespace(additional_config=additional_config, kv_transfer_config=None)
    return plugin.bounded_scheduler(chosen)(vllm_config=config)


@pytest.mark.usefixtures("report")
@pytest.mark.parametrize("chosen", [Scheduler, AsyncScheduler])
@pytest.mark.parametrize("asked", [BOUND, {"metronome_host_bound": True}])
def test_an_engine_that_asks_for_a_bound_gets_vllms_choice_with_its_host_bounded(chosen, asked):
    scheduler = made(chosen, asked)
    assert isinstance(scheduler, chosen)
    assert isinstance(scheduler, HostBound)


@pytest.mark.parametrize("asked", [{}, {"other": 1}, {"metronome_host_bound": False}])
def test_an_engine_that_does_not_ask_gets_the_very_class_that_vllm_chose(asked):
    assert type(made(Scheduler, asked)) is Scheduler


def test_a_bound_that_is_not_in_force_stops_the_engine(monkeypatch):
    def inspect(scheduler):
        raise EngineError("2 layers keep everything")

    monkeypatch.setattr(plugin, "inspect_scheduler", inspect)
    with pytest.raises(EngineError, match="keep everything"):
        made(Scheduler, BOUND)


@pytest.mark.usefixtures("report")
def test_one_line_is_logged_at_start_up(monkeypatch):
    lines = []
    monkeypatch.setattr(plugin.logger, "info", lambda text, *values: lines.append(text % values))
    made(Scheduler, BOUND)
    assert lines == ["what is in force"]
    assert isinstance(plugin.logger, logging.Logger)


def test_a_scheduler_that_is_bounded_already_or_foreign_is_left_alone():
    class Own(HostBound, Scheduler):
        pass

    assert plugin.bounded_scheduler(Own) is Own
    assert plugin.bounded_scheduler(SimpleNamespace) is SimpleNamespace


def test_vllm_is_told_once(monkeypatch):
    monkeypatch.setattr(SchedulerConfig, "get_scheduler_cls", lambda config: Scheduler)
    plugin.install_scheduler()
    installed = SchedulerConfig.get_scheduler_cls
    plugin.install_scheduler()
    assert SchedulerConfig.get_scheduler_cls is installed
    assert issubclass(installed(SimpleNamespace()), HostBound)
