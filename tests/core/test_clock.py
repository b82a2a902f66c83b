import asyncio

import pytest

from harness.core import clock


async def _ticks(period_s: float, count: int, log: list[tuple[str, float]], name: str) -> None:
    for index in range(count):
        await clock.sleep_until(index * period_s)
        log.append((name, clock.now()))


def test_virtual_time_jumps_to_the_next_timer_and_keeps_its_order() -> None:
    async def main() -> list[tuple[str, float]]:
        log: list[tuple[str, float]] = []
        await asyncio.gather(_ticks(3600.0, 3, log, "slow"), _ticks(1800.0, 5, log, "fast"))
        return log

    log = clock.run_virtual(main())
    instants = [instant for _, instant in log]
    assert instants == sorted(instants)
    assert [t for name, t in log if name == "slow"] == pytest.approx([0.0, 3600.0, 7200.0])
    assert clock.run_virtual(main()) == log


def test_an_instant_in_the_past_is_not_waited_for() -> None:
    async def main() -> float:
        await clock.sleep_until(5.0)
        await clock.sleep_until(2.0)
        return clock.now()

    assert clock.run_virtual(main()) == pytest.approx(5.0)


def test_virtual_time_that_cannot_go_on_is_an_error() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="virtual time is stuck"):
        clock.run_virtual(main())
