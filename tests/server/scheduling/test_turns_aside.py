"""
Work that may last for minutes, beside all other large work.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from time import perf_counter, thread_time

import pytest

from barnabas.coordination.regex.pattern import LinearPattern
from barnabas.coordination.steps import InSteps, checkpoint, finished_unless
from barnabas.server.scheduling import turns as turns_module
from barnabas.server.scheduling.turns import PLACES, SLOW_S, PlaceLost, Turns, Work, WorkKind
from tests.support.limits import stated

LONGEST_TURN_S = 0.1


async def endless(count: list[int]) -> None:
    while True:
        count[0] += 1
        await checkpoint()


async def test_matches_take_a_bounded_share_and_end_with_their_callers() -> None:
    turns = Turns()
    text = "a" * 32_000
    begin, busy = perf_counter(), thread_time()

    async def match() -> bool:
        return await InSteps(LinearPattern("(.?){1000}" * 5).matching(text))

    tasks = [asyncio.create_task(turns.aside(match, WorkKind.REQUEST)) for _ in range(10)]
    # In processor time: a busy machine makes a turn longer than its work.
    longest, last = 0.0, thread_time()
    while perf_counter() - begin < 2:
        await asyncio.sleep(0.002)
        longest, last = max(longest, thread_time() - last), thread_time()
    assert thread_time() - busy < 0.6 * (perf_counter() - begin)
    assert longest < LONGEST_TURN_S
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    busy = thread_time()
    await asyncio.sleep(0.2)
    assert thread_time() - busy < 0.05


async def test_other_large_work_does_not_wait_for_it() -> None:
    turns = Turns()
    count = [0]
    task = asyncio.create_task(turns.aside(partial(endless, count), WorkKind.REQUEST))
    await asyncio.sleep(0.05)

    async def short() -> int:
        await checkpoint()
        return 7

    assert await turns.finish(short(), 100) == 7
    assert count[0] > 0
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_its_error_is_that_of_the_steps() -> None:
    async def failing() -> None:
        await checkpoint()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await Turns().aside(failing, WorkKind.REQUEST)


async def test_it_ends_when_nobody_wants_its_result() -> None:
    count, over = [0], [False]
    task = asyncio.create_task(
        Turns().aside(partial(endless, count), WorkKind.REQUEST, lambda: over[0])
    )
    await asyncio.sleep(0.05)
    over[0] = True
    await asyncio.wait_for(task, 5)
    reached = count[0]
    await asyncio.sleep(0.05)
    assert count[0] == reached > 0


@pytest.mark.parametrize("way", ["start", "begin", "aside"])
@pytest.mark.parametrize("step_s", [0.0, SLOW_S / 2])
async def test_a_slow_first_turn_is_counted(way: str, step_s: float) -> None:
    ticks = itertools.count()
    turns = Turns(lambda: next(ticks) * step_s)
    slow: list[None] = []
    turns.on_slow = lambda: slow.append(None)

    async def steps() -> str:
        await checkpoint()
        return "done"

    if way == "start":
        assert "done" == turns.start(steps()).result()
    elif way == "begin":
        work = turns.begin(steps(), lambda: True)
        assert isinstance(work, Work)
        assert "done" == work.result()
    else:
        assert "done" == await turns.aside(steps, WorkKind.REQUEST)

    assert bool(step_s) == bool(slow)


@pytest.mark.parametrize(
    ("steps", "kind"),
    [(1, WorkKind.REQUEST), (3, WorkKind.COORDINATOR)],
    ids=["short work", "work of another kind"],
)
async def test_work_that_needs_no_place_does_not_wait_for_those_in_rotation(
    steps: int, kind: WorkKind
) -> None:
    turns = Turns()
    tasks = [
        asyncio.create_task(turns.aside(partial(endless, [0]), WorkKind.REQUEST))
        for _ in range(PLACES + 1)
    ]
    await asyncio.sleep(0)

    work = partial(of_steps, steps, lambda: None)
    assert steps == await asyncio.wait_for(turns.aside(work, kind), 5)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


STEP_S = stated("match-time") / 4
"""
The time of a step below, which is a turn: a place lasts for four while others wait.
"""


async def of_steps(count: int, step: Callable[[], None]) -> int:
    for _ in range(count):
        step()
        await checkpoint()
    return count


def ends(counts: Sequence[int]) -> list[tuple[int, bool]]:
    """
    The numbers of the works in the order in which they end, and whether each has lost its place.
    """
    ended = []
    rotation: deque[tuple[int, int, int]] = deque()  # number, steps left, turns with a place
    waiting: deque[int] = deque()
    for number, count in enumerate(counts):
        if count == 0:
            ended.append((number, False))
        elif len(rotation) < stated("matches-at-once"):
            rotation.append((number, count - 1, 0))
        else:
            waiting.append(number)
    while rotation:
        number, left, turns = rotation.popleft()
        is_lost = turns + 1 >= 4 and bool(waiting) and left > 0
        if left > 0 and not is_lost:
            rotation.append((number, left - 1, turns + 1))
            continue
        ended.append((number, is_lost))
        if waiting:
            following = waiting.popleft()
            rotation.append((following, counts[following] - 1, 0))
    return ended


@pytest.mark.parametrize("seed", range(30))
async def test_works_end_in_the_order_of_a_plain_queue(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns_module, "PAUSE_S", 0)
    random = Random(seed)
    counts = [random.choice((0, 1, 2, 5, 10, 50)) for _ in range(random.randrange(20))]
    now_s = 0.0
    ended: list[tuple[int, bool]] = []

    def step() -> None:
        nonlocal now_s
        now_s += STEP_S

    async def run(number: int, count: int) -> None:
        try:
            assert count == await turns.aside(partial(of_steps, count, step), WorkKind.REQUEST)
        except PlaceLost:
            ended.append((number, True))
        else:
            ended.append((number, False))

    turns = Turns(lambda: now_s)
    await asyncio.gather(*(run(number, count) for number, count in enumerate(counts)))

    assert ends(counts) == ended


def test_steps_end_once_nobody_wants_their_result() -> None:
    count = [0]

    assert finished_unless(endless(count), lambda: count[0] == 3) is None
    assert [3] == count
