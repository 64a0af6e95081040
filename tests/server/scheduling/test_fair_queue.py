"""
Work for many clients, of whom the one that has asked for least is next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from barnabas.server.scheduling.fair_queue import LEAST_BYTES, FairQueue
from tests.support.limits import stated
from tests.support.server import until


class Peer:
    """
    A client; it is gone when told.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.queue_place = -1.0
        self.is_closing = False


class Steady(Executor):
    """
    Does one piece of work when told. Each moves the clock by what it returns.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.trace: list[str] = []
        self._waiting: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._waiting.append((future, fn, args))
        assert 1 == len(self._waiting), "one piece of work at a time"
        return future

    async def work(self) -> None:
        """
        Do all that is submitted, and what is submitted then.
        """
        while self._waiting:
            future, fn, args = self._waiting.pop()
            try:
                future.set_result(fn(*args))
            except Exception as error:
                future.set_exception(error)
            for _ in range(5):
                await asyncio.sleep(0)


class Crowd:
    def __init__(self) -> None:
        self.thread = Steady()
        self.queue = FairQueue(self.thread, lambda: self.thread.now)

    def ask(self, peer: Peer, seconds: float, size: int = 0) -> asyncio.Task[str]:
        def work() -> str:
            self.thread.now += seconds
            self.thread.trace.append(peer.name)
            return peer.name

        return asyncio.ensure_future(self.queue.do(peer, work, size))

    async def asked(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    async def serve(self, peer: Peer, seconds: float) -> None:
        """
        Do work for *peer*, who is known then.
        """
        task = self.ask(peer, seconds)
        await self.asked()
        await self.thread.work()
        await task
        self.thread.trace.clear()


@pytest.fixture
def crowd() -> Crowd:
    return Crowd()


async def test_client_with_few_requests_waits_only_for_work_in_progress(crowd: Crowd) -> None:
    many = [Peer(f"much-{number}") for number in range(5)]
    honest = Peer("little")
    for peer in (*many, honest):
        await crowd.serve(peer, 0.01 if peer is honest else 1)
    for peer in many:
        crowd.ask(peer, 1)
    await crowd.asked()
    for _ in range(3):
        task = crowd.ask(honest, 0.01)
        await crowd.asked()
        assert not task.done()
    await crowd.thread.work()

    assert ["much-0", "little", "little", "little"] == crowd.thread.trace[:4]
    assert {peer.name for peer in many} == set(crowd.thread.trace) - {"little"}


async def test_clients_with_equal_load_take_turns(crowd: Crowd) -> None:
    a, b = Peer("a"), Peer("b")
    for peer in (a, b):
        await crowd.serve(peer, 0.5)

    async def insist(peer: Peer) -> None:
        for _ in range(3):
            await crowd.ask(peer, 0.5)

    both = asyncio.gather(insist(a), insist(b))
    await crowd.asked()
    await crowd.thread.work()
    await both

    assert ["a", "b", "a", "b", "a", "b"] == crowd.thread.trace


async def test_reconnecting_clients_come_after_one_that_stays(crowd: Crowd) -> None:
    honest = Peer("honest")
    await crowd.serve(honest, 0.01)
    for number in range(5):
        crowd.ask(Peer(f"new-{number}"), 1)
    crowd.ask(honest, 0.01)
    await crowd.asked()
    await crowd.thread.work()

    assert ["new-0", "honest", "new-1", "new-2", "new-3", "new-4"] == crowd.thread.trace


async def test_new_clients_are_served_beside_busy_ones(crowd: Crowd) -> None:
    greedy = Peer("greedy")
    await crowd.serve(greedy, 1)

    async def insist() -> None:
        while True:
            await crowd.ask(greedy, 1)

    insisting = asyncio.ensure_future(insist())
    await crowd.asked()
    new = crowd.ask(Peer("new"), 1)
    await crowd.asked()
    working = asyncio.ensure_future(crowd.thread.work())
    assert "new" == await new
    insisting.cancel()
    await working

    assert crowd.thread.trace.index("new") <= 2


async def test_exception_of_the_work_is_raised_to_its_requester(crowd: Crowd) -> None:
    def fail() -> None:
        raise ValueError("no")

    failing = asyncio.ensure_future(crowd.queue.do(Peer("a"), fail, 0))
    next_one = crowd.ask(Peer("b"), 1)
    await crowd.asked()
    await crowd.thread.work()

    with pytest.raises(ValueError, match="no"):
        await failing
    assert "b" == await next_one


async def test_cancelled_work_is_not_started(crowd: Crowd) -> None:
    under_way, cancelled, last = (crowd.ask(Peer(name), 1) for name in "abc")
    await crowd.asked()
    cancelled.cancel()
    under_way.cancel()
    await crowd.asked()
    await crowd.thread.work()

    assert "c" == await last
    assert ["a", "c"] == crowd.thread.trace


@pytest.mark.parametrize("size", [0, 2**20])
async def test_abandoned_work_takes_little_memory(crowd: Crowd, size: int) -> None:
    kept = int(stated("long-left-behind")) // max(size, LEAST_BYTES)
    gone = [Peer(f"gone-{number}") for number in range(kept + 20)]
    first, stays = crowd.ask(Peer("first"), 1), crowd.ask(Peer("stays"), 1)
    tasks = []
    for peer in gone:
        tasks.append(crowd.ask(peer, 1, size))
        await crowd.asked()
        peer.is_closing = True
    last = crowd.ask(Peer("last"), 1)
    await until(lambda: 20 == sum(task.cancelled() for task in tasks))
    await crowd.thread.work()

    names = [peer.name for peer in gone[:kept]]
    assert ["first", "stays", *names, "last"] == crowd.thread.trace
    assert ["first", "stays", "last"] == [await each for each in (first, stays, last)]
