"""
When Python's collector of cycles works: not while large requests are served.
"""

from __future__ import annotations

import gc
import itertools
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from barnabas.server.resources.collector import COLLECT_AFTER, MANY, THRESHOLDS, Collector


class Loop:
    """
    A loop and its clients: looks are due when told, and somebody is served or nobody.
    """

    def __init__(self) -> None:
        self.served = 0
        self._due: list[Callable[[], object]] = []

    def call_later(self, _delay: float, callback: Callable[[], object]) -> None:
        self._due.append(callback)

    def look(self) -> None:
        due, self._due = self._due, []
        for callback in due:
            callback()

    @property
    def is_looking(self) -> bool:
        return bool(self._due)


class Kept:
    """
    An object in a cycle, which only a collection frees.
    """

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def collector(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    # In a process with the objects of many tests a full collection takes longer than SHORT_S.
    monkeypatch.setattr("barnabas.server.resources.collector.SHORT_S", 60.0)
    with started(Collector(loop, lambda: loop.served)) as collector:
        yield collector


@contextmanager
def started(collector: Collector) -> Iterator[Collector]:
    thresholds = gc.get_threshold()
    try:
        collector.start()
        yield collector
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        gc.enable()


@pytest.fixture
def collections() -> Iterator[list[int]]:
    """
    The generations of the collections that there were.
    """
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen.append(info["generation"])

    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)


def new_objects(count: int) -> list[Any]:
    return [[] for _ in range(count)]


def lost_cycle() -> weakref.ref[Kept]:
    return weakref.ref(Kept())


def test_garbage_of_small_requests_is_collected_as_usual(
    collector: Collector, collections: list[int]
) -> None:
    garbage = lost_cycle()

    kept = new_objects(COLLECT_AFTER + 1)

    assert (COLLECT_AFTER, *THRESHOLDS) == gc.get_threshold()
    assert collections
    assert set(collections) == {0}
    assert garbage() is None
    assert kept


def test_collector_does_not_run_while_large_requests_are_served(
    collector: Collector, collections: list[int]
) -> None:
    """
    Nor is what is left of them looked at afterwards, by a small one.
    """
    before = gc.get_freeze_count()
    collector.be_busy(True)
    large = new_objects(20 * COLLECT_AFTER)
    collector.be_busy(False)
    assert not collections

    small = new_objects(COLLECT_AFTER + 1)
    assert [0] == collections
    # Others in this process may free some that were set aside before.
    assert gc.get_freeze_count() - before > 0.9 * len(large)
    assert small


def test_request_without_garbage_costs_no_collection(
    collector: Collector, collections: list[int], loop: Loop
) -> None:
    collector.be_busy(True)
    del new_objects(20 * COLLECT_AFTER)[:]
    frozen = gc.get_freeze_count()
    collector.be_busy(False)

    assert frozen >= gc.get_freeze_count()
    loop.look()
    assert not collections
    assert not loop.is_looking


def test_garbage_of_large_requests_is_collected_when_idle(
    collector: Collector, collections: list[int], loop: Loop
) -> None:
    collector.be_busy(True)
    garbage = lost_cycle()
    kept = new_objects(2 * COLLECT_AFTER)
    collector.be_busy(False)
    for _ in range(3):
        loop.served += 1
        loop.look()
    assert garbage() is not None

    loop.look()

    assert garbage() is None
    assert [2] == collections
    assert not loop.is_looking
    assert kept


def test_free_lists_are_emptied_without_a_visit_of_objects(
    collector: Collector, collections: list[int], loop: Loop
) -> None:
    kept = new_objects(COLLECT_AFTER // 2)
    garbage = lost_cycle()
    del [(number,) * 7 for number in range(1000)][:]
    before = sys.getallocatedblocks()

    collector.empty_free_lists()

    assert before - sys.getallocatedblocks() >= 1000
    assert [2] == collections
    assert garbage() is not None
    loop.look()
    assert garbage() is None
    assert kept


def test_full_collection_waits_for_idle_time_and_many_new_objects(
    loop: Loop, collections: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    With 10,000 partitions it takes half a second, in which a client may come.
    """
    seconds = itertools.count()
    monkeypatch.setattr("barnabas.server.resources.collector.perf_counter", lambda: next(seconds))
    there = new_objects(50 * COLLECT_AFTER)
    with started(Collector(loop, lambda: loop.served)) as collector:
        for kept, collected in ((2 * COLLECT_AFTER, 0), (sys.getallocatedblocks(), 1)):
            collections.clear()
            collector.be_busy(True)
            objects = new_objects(kept)
            collector.be_busy(False)
            loop.look()
            assert 2 not in collections
            loop.look()

            assert collected == collections.count(2)
            assert not loop.is_looking
            del objects
        assert there


def test_garbage_is_collected_eventually_under_load(
    collector: Collector, loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.server.resources.collector.LONG_S", 0.0)
    many = max(MANY, sys.getallocatedblocks() // 4)
    for is_without_end in (True, False):
        collector.be_busy(True)
        garbage = lost_cycle()
        kept = new_objects(many - COLLECT_AFTER)
        collector.pause()
        assert garbage() is not None
        kept += new_objects(2 * COLLECT_AFTER)
        collector.pause()
        assert garbage() is not None, "the blocks were not there long enough"
        if is_without_end:
            collector.pause()
        else:
            collector.be_busy(False)
            loop.served += 1
            loop.look()
        assert garbage() is None
        del kept


def test_large_requests_that_leave_nothing_cause_no_full_collection(
    collector: Collector, collections: list[int], loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.server.resources.collector.SHORT_S", 0.0)
    for _ in range(20):
        collector.be_busy(True)
        objects = new_objects(MANY // 10)
        collector.be_busy(False)
        del objects
        loop.look()

    assert 2 not in collections


def test_objects_of_requests_that_are_served_cause_no_full_collection(
    loop: Loop, collections: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.server.resources.collector.SHORT_S", 0.0)
    monkeypatch.setattr("barnabas.server.resources.collector.LONG_S", 0.0)
    held_bytes = 0
    with started(Collector(loop, held_bytes=lambda: held_bytes)) as collector:
        collections.clear()
        collector.be_busy(True)
        objects = new_objects(MANY + sys.getallocatedblocks())
        held_bytes = len(objects) * sys.getsizeof([])
        for _ in range(3):
            collector.pause()
        collector.be_busy(False)
        loop.look()
        assert not collections

        held_bytes = 0
        collector.be_busy(True)
        collector.pause()
        assert [2] == collections
        assert objects


def test_objects_of_requests_that_soon_end_cause_no_full_collection(
    collector: Collector, collections: list[int]
) -> None:
    collections.clear()
    collector.be_busy(True)
    for _ in range(3):
        objects = new_objects(MANY + sys.getallocatedblocks())
        collector.pause()
        del objects

    assert not collections
