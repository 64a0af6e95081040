"""
Work that may last for minutes, beside all other large work.
"""

from __future__ import annotations

import asyncio
from time import perf_counter, thread_time

import pytest

from barnabas.server.regex.pattern import LinearPattern
from barnabas.server.scheduling.turns import Steps, Turns


def endless(count: list[int]) -> Steps[None]:
    while True:
        count[0] += 1
        yield


async def test_matches_take_a_bounded_share_and_end_with_their_callers() -> None:
    turns = Turns()
    text = "a" * 32_000
    begin, busy = perf_counter(), thread_time()
    tasks = [
        asyncio.create_task(turns.aside(LinearPattern("(.?){1000}" * 5).matching(text)))
        for _ in range(10)
    ]
    longest, last = 0.0, perf_counter()
    while perf_counter() - begin < 2:
        await asyncio.sleep(0.002)
        longest, last = max(longest, perf_counter() - last), perf_counter()
    assert thread_time() - busy < 0.6 * (perf_counter() - begin)
    assert longest < 0.5
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    busy = thread_time()
    await asyncio.sleep(0.2)
    assert thread_time() - busy < 0.05


async def test_other_large_work_does_not_wait_for_it() -> None:
    turns = Turns()
    count = [0]
    task = asyncio.create_task(turns.aside(endless(count)))
    await asyncio.sleep(0.05)

    def short() -> Steps[int]:
        yield
        return 7

    assert await turns.finish(short(), 100) == 7
    assert count[0] > 0
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_its_error_is_that_of_the_steps() -> None:
    def failing() -> Steps[None]:
        yield
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await Turns().aside(failing())


async def test_it_ends_when_nobody_wants_its_result() -> None:
    count, over = [0], [False]
    task = asyncio.create_task(Turns().aside(endless(count), lambda: over[0]))
    await asyncio.sleep(0.05)
    over[0] = True
    await asyncio.wait_for(task, 5)
    reached = count[0]
    await asyncio.sleep(0.05)
    assert count[0] == reached > 0
