"""
Work beside the requests.
"""

from __future__ import annotations

import asyncio

import pytest

from barnabas.server.scheduling.background import Background
from barnabas.testing.manual_clock import ManualClock


async def test_periodic_task_runs_at_every_interval() -> None:
    clock = ManualClock()
    background = Background(clock)
    rounds: list[float] = []
    background.every("work", 60.0, lambda: rounds.append(clock.monotonic()))
    await asyncio.sleep(0)

    await clock.pass_time(180.0)

    assert [60.0, 120.0, 180.0] == rounds
    await background.stop()


async def test_failed_round_is_logged_and_the_next_one_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    background = Background(clock)
    rounds: list[float] = []

    async def work() -> None:
        rounds.append(clock.monotonic())
        if len(rounds) == 1:
            raise OSError("disk is gone")

    background.every("cleaner", 1.0, work)
    await asyncio.sleep(0)

    await clock.pass_time(2.0)

    assert [1.0, 2.0] == rounds
    assert ["cleaner failed; the next round is in 1 s"] == caplog.messages
    await background.stop()


async def test_stop_cancels_running_tasks() -> None:
    background = Background(ManualClock())
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("ended")

    background.spawn("work", work())
    await asyncio.sleep(0)

    await background.stop()

    assert ["ended"] == ended


async def test_failure_of_an_essential_task_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    background = Background(ManualClock())
    failure = ValueError("gone")

    async def die(error: Exception) -> None:
        raise error

    background.spawn("helper", die(OSError("not so bad")))
    await asyncio.sleep(0)
    background.spawn("acceptor", die(failure), essential=True)

    assert failure is await background.failure()
    assert ["helper failed", "acceptor failed"] == caplog.messages
    await background.stop()
