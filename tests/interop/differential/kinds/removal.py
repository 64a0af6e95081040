"""
Records that go: by age, by size, and because somebody said so.
"""

from __future__ import annotations

from dataclasses import replace

from tests.interop.differential.kinds.appends import batch, rounds
from tests.interop.differential.recipes import Producer
from tests.interop.differential.scripts import HOUR_MS, Script
from tests.interop.differential.waiting import Settled


def delete_records(script: Script) -> None:
    """
    The start of the log is moved, also to where it cannot go.
    """
    chance = script.chance
    script.create(
        partitions=chance.choice((1, 2)),
        internal_segment_bytes=chance.choice((600, 3000, 1 << 20)),
        retention_ms=-1,
    )
    sequence = 0
    for _ in rounds(script, 8, settles=True):
        partition = chance.randrange(script.partitions)
        some = batch(script)
        if partition == 0 and chance.random() < 0.5:
            some = replace(some, producer=Producer(6000, 0, sequence))
            sequence += len(some.times)
        script.produce(some, partition=partition)
        if chance.random() < 0.5:
            end = script.end(partition)
            offset = chance.choice((-1, -2, 0, end, end + 1, *(chance.randrange(end + 1),) * 4))
            script.delete_records(offset, partition=partition)
            script.list_offsets(-2, partition=partition)


def retention(script: Script) -> None:
    """
    Limits that are drawn tighter by a change of configs, and taken back before more is appended.
    """
    chance = script.chance
    size = chance.choice((500, 2000, 6000))
    age = chance.choice((HOUR_MS, 7 * 24 * HOUR_MS))
    policy = chance.choice(("delete", "delete", "compact,delete"))
    script.create(
        internal_segment_bytes=size,
        segment_ms=age,
        retention_ms=-1,
        cleanup_policy=policy,
        min_cleanable_dirty_ratio=1,
        min_compaction_lag_ms=2**62,
    )
    for number in rounds(script, 6):
        some = batch(script)
        # What has no time of its own is as old as its file, which differs.
        script.produce(
            replace(some, times=tuple(t if t > 0 else script.now_ms for t in some.times))
        )
        if number % 3 == 2:
            ages = (HOUR_MS, 3 * HOUR_MS, 5 * HOUR_MS, 40 * HOUR_MS, 1)
            limits = {"retention.ms": ages, "retention.bytes": (0, 1, 800, 2500, 10_000)}
            name = chance.choice(tuple(limits))
            script.alter({name: chance.choice(limits[name])})
            script.do(Settled(script.topic, range(script.partitions), policy))
            script.alter({"retention.ms": -1, "retention.bytes": None})
            script.list_offsets(-2)
