from __future__ import annotations

import asyncio
import time

from barnabas.testing import Broker
from barnabas.testing.hosts.embedded import Embedded
from barnabas.testing.hosts.loop import CountingLoop


def test_clock_move_waits_for_executor_work_and_its_consequences() -> None:
    """
    The clock stays at the time of a timer until the work is done.
    """
    seen: list[int] = []

    async def work_every_minute(broker: Embedded) -> None:
        async def work() -> None:
            for _ in range(3):
                await broker.parts.workers.in_upkeep(lambda: time.sleep(0.003))
                await asyncio.create_task(asyncio.sleep(0))
            seen.append(broker.clock.now_ms())

        broker.background.every("work", 60, work)

    with Broker(clock="still", start_ms=0) as broker:
        broker._host.call(work_every_minute)

        broker.clock.advance(minutes=5)

    assert [60_000, 120_000, 180_000, 240_000, 300_000] == seen


def test_event_loop_is_idle_when_its_executors_are() -> None:
    async def work() -> list[str]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, CountingLoop)
        done: list[str] = []
        loop.run_in_executor(None, lambda: time.sleep(0.01)).add_done_callback(
            lambda _: done.append("work")
        )
        await loop.settle()
        return done

    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        assert ["work"] == runner.run(work())
