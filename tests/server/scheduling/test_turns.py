"""
Large work takes turns with everything else.
"""

from __future__ import annotations

import asyncio

import pytest

from barnabas.coordination.steps import await_each, checkpoint, finished, map_in_turns
from barnabas.server.scheduling.turns import TURN_S, Turns
from tests.support.server import until

STEPS_PER_TURN = 2


class Steady:
    """
    A clock that a step moves by half a turn, and nothing else.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.trace: list[str] = []

    def __call__(self) -> float:
        return self.now

    async def steps(self, name: str, count: int) -> str:
        """
        Work of so many steps that tells of each.
        """
        for _ in range(count):
            self.now += TURN_S / STEPS_PER_TURN
            self.trace.append(name)
            await checkpoint()
        return name


@pytest.fixture
def clock() -> Steady:
    return Steady()


async def test_work_that_ends_within_a_turn_has_its_result_at_once(clock: Steady) -> None:
    work = Turns(clock).start(clock.steps("a", 1))

    assert work.is_done
    assert "a" == work.result()


async def test_other_callbacks_run_between_turns_of_large_work(clock: Steady) -> None:
    work = Turns(clock).start(clock.steps("a", 7))
    result = work.future()
    a_turn = ["a"] * STEPS_PER_TURN
    assert a_turn == clock.trace

    await asyncio.sleep(0)

    assert 2 * a_turn == clock.trace
    assert "a" == await result
    assert 7 == len(clock.trace)


async def test_all_large_work_shares_one_turn_at_a_time(clock: Steady) -> None:
    turns = Turns(clock)
    works = [turns.start(clock.steps(name, 100), size=100) for name in "abc"]
    before = len(clock.trace)

    await asyncio.sleep(0)

    assert STEPS_PER_TURN == len(clock.trace) - before
    await asyncio.gather(*(work.future() for work in works))


async def test_other_requests_run_undisturbed_between_turns(clock: Steady) -> None:
    turns = Turns(clock)
    turns.served = 1
    work = turns.start(clock.steps("a", 3))
    result = work.future()
    before = len(clock.trace)

    for _ in range(5):
        await asyncio.sleep(0)
    assert before == len(clock.trace)

    assert "a" == await result


async def test_smallest_work_runs_first_and_started_work_is_finished(clock: Steady) -> None:
    # Much smaller new work runs first: the waiting work is at most as large as the work served.
    turns = Turns(clock)
    works = {
        name: turns.start(clock.steps(name, count), size=count)
        for name, count in {"a": 100, "b": 99, "d": 40, "c": 45}.items()
    }

    await asyncio.gather(*(work.future() for work in works.values()))

    ends = {name: len(clock.trace) - clock.trace[::-1].index(name) for name in works}
    assert ["d", "c", "a", "b"] == sorted(works, key=lambda name: ends[name])


async def test_small_work_does_not_wait_for_large_work(clock: Steady) -> None:
    turns = Turns(clock)
    turns.start(clock.steps("large", 1000), size=1000)

    assert turns.start(clock.steps("small", 1)).is_done


async def test_error_is_raised_to_its_waiter_and_the_next_work_runs(clock: Steady) -> None:
    async def failing() -> None:
        await clock.steps("a", 5)
        raise ValueError("broken")

    turns = Turns(clock)
    failed = turns.start(failing(), size=5)
    other = turns.start(clock.steps("b", 5), size=9)

    with pytest.raises(ValueError, match="broken"):
        await failed.future()
    assert "b" == await other.future()
    with pytest.raises(ValueError, match="broken"):
        finished(failing())
    with pytest.raises(ValueError, match="broken"):
        await turns.finish(failing())


async def test_abandoned_work_is_dropped(clock: Steady) -> None:
    turns = Turns(clock)
    left = turns.start(clock.steps("a", 5), size=5)
    left.future().cancel()
    other = turns.start(clock.steps("b", 5), size=9)

    assert "b" == await other.future()


async def test_coroutine_goes_on_when_its_future_is_done(clock: Steady) -> None:
    turns = Turns(clock)
    future = asyncio.get_running_loop().create_future()

    async def waiting() -> int:
        return int(await future) + 1

    work = turns.start(waiting())
    other = turns.start(clock.steps("a", 7))
    assert work.is_waiting
    assert "a" == await other.future()

    future.set_result(6)

    assert 7 == await work.future()
    assert not work.is_waiting


@pytest.mark.parametrize("waits", [True, False], ids=["at a future", "at a checkpoint"])
async def test_cancelled_coroutine_ends_where_it_is(clock: Steady, waits: bool) -> None:
    ended = []

    async def endless() -> None:
        try:
            while True:
                clock.now += TURN_S
                await (asyncio.Event().wait() if waits else asyncio.sleep(0))
        finally:
            ended.append(True)

    work = Turns(clock).start(endless())
    work.cancel()

    with pytest.raises(asyncio.CancelledError):
        await work.future()
    assert [True] == ended


async def test_listener_hears_the_result_or_the_error_soon(clock: Steady) -> None:
    heard: list[object] = []

    async def failing() -> None:
        await asyncio.Event().wait()

    done = Turns(clock).start(clock.steps("a", 1))
    done.then(heard.append)
    cancelled = Turns(clock).start(failing())
    cancelled.then(heard.append)
    assert [] == heard
    cancelled.cancel()
    await until(lambda: len(heard) == 2)

    assert "a" == heard[0]
    assert isinstance(heard[1], asyncio.CancelledError)


async def test_presence_of_large_work_is_reported(clock: Steady) -> None:
    turns = Turns(clock, calm_s=0.05)
    told: list[bool] = []
    turns.on_busy = told.append

    turns.start(clock.steps("small", 1))
    assert [] == told
    work = turns.start(clock.steps("a", 5))
    assert [True] == told
    await turns.start(clock.steps("b", 5)).future()
    await work.future()
    await turns.start(clock.steps("c", 5)).future()
    assert [True] == told

    await until(lambda: told[-1] is False)

    assert [True, False] == told


async def test_large_work_in_threads_counts_too(clock: Steady) -> None:
    turns = Turns(clock, calm_s=0.05)
    seen: list[bool] = []
    turns.on_busy = seen.append

    with turns.elsewhere(), turns.elsewhere():
        assert [True] == seen
        await turns.start(clock.steps("a", 5)).future()
        await asyncio.sleep(0.1)
        assert [True] == seen
        work = turns.start(clock.steps("b", 50))
    await asyncio.sleep(0)
    assert [True] == seen
    await work.future()
    await until(lambda: len(seen) > 1)

    assert [True, False] == seen


async def test_items_are_yielded_in_order_with_others_between(clock: Steady) -> None:
    seen = []
    others: list[int] = []
    asyncio.get_running_loop().call_soon(others.append, 1)

    async for item in Turns(clock).between(range(5)):
        clock.now += TURN_S / STEPS_PER_TURN
        seen.append((item, len(others)))

    assert [(0, 0), (1, 0), (2, 1), (3, 1), (4, 1)] == seen


@pytest.mark.parametrize(("items", "calls"), [(1, []), (3, [True, False])])
async def test_items_that_take_longer_than_a_turn_are_large_work(
    clock: Steady, items: int, calls: list[bool]
) -> None:
    turns = Turns(clock, calm_s=0.01)
    seen: list[bool] = []
    turns.on_busy = seen.append

    async for _ in turns.between(range(items)):
        assert seen == ([True] if clock.now >= TURN_S else [])
        clock.now += TURN_S / STEPS_PER_TURN
    await until(lambda: len(seen) == len(calls))

    assert calls == seen


def test_lists_are_built_in_turns() -> None:
    async def doubled(item: int) -> list[int]:
        return await map_in_turns(lambda number: 2 * number, [item, item + 1])

    checkpoints = await_each(doubled, [1, 5]).__await__()

    assert [None] * 6 == list(checkpoints)
    assert [[2, 4], [10, 12]] == finished(await_each(doubled, [1, 5]))
