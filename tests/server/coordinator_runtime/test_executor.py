"""
Long work of a coordinator, beside its requests.
"""

from __future__ import annotations

import asyncio
import logging
from itertools import count
from typing import Any

import pytest

from barnabas.coordination.coordinator_runtime.result import NOTHING, CoordinatorResult
from barnabas.coordination.steps import checkpoint
from barnabas.server.coordinator_runtime.executor import TurnsExecutor
from barnabas.server.scheduling import turns
from barnabas.server.scheduling.turns import PLACES, Turns
from tests.support.server import until

TICK_S = 0.0001
"""The time passes whenever somebody looks at it, so that work takes several turns."""


async def endless() -> CoordinatorResult[Any]:
    while True:
        await checkpoint()


async def test_work_that_takes_long_gives_way_and_may_be_scheduled_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> CoordinatorResult[Any]:
        for _ in range(100):
            await checkpoint()
        return NOTHING

    monkeypatch.setattr(turns, "PLACE_S", 0.01)
    ticks = count()
    written: list[CoordinatorResult[Any]] = []
    executor = TurnsExecutor(Turns(lambda: next(ticks) * TICK_S), written.append)
    for number in range(PLACES):
        executor.schedule(f"group-{number}", endless)
    await asyncio.sleep(0)
    executor.schedule("other", work)
    with caplog.at_level(logging.WARNING):
        await until(lambda: written == [NOTHING])

    assert 1 <= sum(not executor.is_scheduled(f"group-{number}") for number in range(PLACES))
    assert {None} == {record.exc_info for record in caplog.records}
    executor.cancel_all()
