"""
Lives of a broker's logs, each with something of everything that its name says.

They do the same whenever they are run, so that what they do can be numbered.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from tests.support.crash.world import World

Workload = Callable[[World], None]

PRODUCERS: Final = (7, 8)


def appends(world: World) -> None:
    """
    Every append is flushed before it is acknowledged; a restart in between.
    """
    world.start()
    t = world.create("t", flush_messages=1)
    for number in range(12):
        world.append(t, b"k", b"l", producer_id=PRODUCERS[number % 2] if number % 3 else -1)
        if number % 5 == 4:
            world.pass_time(1000)
            world.checkpoint()
    world.stop()
    world.start()
    for _ in range(8):
        world.append(t, b"k")
    world.pass_time(1000)
    world.stop()


def seldom_flushed(world: World) -> None:
    """
    Flushes by number, by time and by rolling a segment.
    """
    world.start()
    t = world.create("t", flush_messages=9, segment_ms=50_000)
    for number in range(22):
        world.append(t, *[b"k"] * (number % 3 + 1), producer_id=PRODUCERS[number % 2])
        if number in (6, 13):
            world.pass_time(60_000)
        if number == 9:
            world.flush(t)
            world.checkpoint()
    world.logs.maintenance.flush_dirty_logs()
    world.pass_time(2000)
    world.checkpoint()
    world.append(t, b"k")
    world.stop()


def transactions(world: World) -> None:
    """
    Transactions of two producers that overlap, also over a restart and over segments.
    """
    world.start()
    t = world.create("t")
    first, second = PRODUCERS
    for number in range(4):
        world.append(t, b"a", producer_id=first, transactional=True)
        world.append(t, b"b", b"c", producer_id=second, transactional=True)
        world.append(t, b"d")
        if number == 1:
            world.flush(t)
            world.checkpoint()
        world.end_transaction(t, first, commit=number % 2 == 0)
        world.append(t, b"e", producer_id=second, transactional=True)
        world.pass_time(500)
        if number < 3:
            world.end_transaction(t, second, commit=number == 0)
    world.stop()
    world.start()
    world.append(t, b"f", producer_id=first, transactional=True)
    world.flush(t)
    world.end_transaction(t, second, commit=False)
    world.append(t, b"g")
    world.end_transaction(t, first, commit=False)
    world.log(t).roll()
    world.pass_time(1000)
    world.checkpoint()
    world.append(t, b"h", producer_id=second, transactional=True)
    world.flush(t)


def trimming(world: World) -> None:
    """
    Retention by size and by time, and deleted records.
    """
    world.start()
    t = world.create("t", retention_bytes=2000)
    u = world.create("u", retention_ms=100_000)
    for _ in range(3):
        for number in range(7):
            world.append(t, b"k", b"l", producer_id=PRODUCERS[0])
            world.append(u, b"k")
            if number == 3:
                world.delete_records(t, world.log(t).log_end_offset - 3)
        world.flush(u)
        world.checkpoint()
        world.check_retention()
        world.pass_time(60_000)
        world.append(t, b"m")
        world.checkpoint()
    world.delete_records(u, world.log(u).log_end_offset)
    world.checkpoint()
    world.check_retention()
    world.pass_time(60_000)
    world.stop()


def compaction(world: World) -> None:
    """
    The cleaner, at keys, tombstones and transactions, in several rounds.
    """
    world.start()
    c = world.create("c", cleanup_policy=("compact",), delete_retention_ms=1000)
    first, second = PRODUCERS
    for number in range(3):
        for key in (b"a", b"b", b"c", b"a"):
            world.append(c, key, b"d", producer_id=first)
        world.append(c, b"b", producer_id=second, transactional=True)
        world.append(c, b"e", values=False)
        world.end_transaction(c, second, commit=number == 1)
        if number < 2:
            world.flush(c)
        world.append(c, b"f%d" % number)
        world.log(c).roll()
        world.append(c, b"g")
        world.clean()
        world.pass_time(2000)
    world.checkpoint()
    world.stop()
    world.start()
    for key in (b"a", b"b", b"h"):
        world.append(c, key)
    world.log(c).roll()
    world.clean()
    world.pass_time(20)
    world.append(c, b"a", values=False)
    world.stop()


def compaction_of_the_unflushed(world: World) -> None:
    """
    A later value that no flush has covered makes an earlier one obsolete that was flushed.
    """
    world.start()
    c = world.create("c", cleanup_policy=("compact", "delete"), retention_bytes=1500)
    for _ in range(2):
        for key in (b"a", b"b", b"c", b"d", b"e"):
            world.append(c, key, key + b"1")
        world.flush(c)
        world.checkpoint()
        for key in (b"a", b"b", b"c", b"d"):
            world.append(c, key)
        world.log(c).roll()
        world.clean()
    world.pass_time(1000)


def topics(world: World) -> None:
    """
    Logs that are made and deleted, also one of the name of another.
    """
    world.start()
    t, u = world.create("t"), world.create("u", flush_messages=1)
    world.append(t, b"k")
    world.append(u, b"k", producer_id=PRODUCERS[0])
    world.delete(t)
    v = world.create("v")
    world.checkpoint()
    t = world.create("w")
    for _ in range(6):
        world.append(t, b"k", b"l")
        world.append(v, b"k", b"l")
    world.flush(t)
    world.delete(v)
    world.pass_time(20)
    world.append(u, b"l", producer_id=PRODUCERS[0])
    world.stop()
    world.start()
    world.delete(u)
    world.append(t, b"k")
    world.pass_time(1000)
    world.stop()


def crashes(world: World) -> None:
    """
    A machine that crashes again and again, keeping some part of what was not synced.
    """
    chance = Random(4711)
    world.start()
    t = world.create("t")
    for life in range(5):
        for number in range(6):
            world.append(t, b"k", b"l", producer_id=PRODUCERS[number % 2])
            if number == life:
                world.flush(t)
        world.pass_time(1000)
        if life % 2:
            world.checkpoint()
        for number in range(4):
            world.append(t, b"m", producer_id=PRODUCERS[number % 2], transactional=number > 1)
        world.crash(lambda most: chance.choice((0, most, chance.randint(0, most))))
        for producer_id in PRODUCERS:
            world.end_transaction(t, producer_id, commit=False)


WORKLOADS: Final[tuple[Workload, ...]] = (
    appends,
    seldom_flushed,
    transactions,
    trimming,
    compaction,
    compaction_of_the_unflushed,
    topics,
    crashes,
)
