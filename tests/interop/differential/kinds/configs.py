"""
Topics that change while they are used.
"""

from __future__ import annotations

from tests.interop.differential.kinds.appends import batch, rounds
from tests.interop.differential.scripts import HOUR_MS, Script

CHANGES: tuple[tuple[str, tuple[object, ...]], ...] = (
    ("segment.bytes", (1_048_576, 2_000_000, 1000, "many")),
    ("internal.segment.bytes", (900, 5000, 1 << 20)),
    ("segment.ms", (1, HOUR_MS, 0, -1)),
    ("segment.jitter.ms", (0,)),
    ("index.interval.bytes", (0, 100, 5000, -1)),
    # Smaller ones may keep Kafka from starting again after a crash: "full-index-after-crash".
    ("segment.index.bytes", (1200, 1 << 18, 3)),
    ("compression.type", ("gzip", "producer", "uncompressed", "brotli", "")),
    ("message.timestamp.type", ("LogAppendTime", "CreateTime", "logappendtime")),
    ("message.timestamp.after.max.ms", (HOUR_MS, 0, -1)),
    ("max.message.bytes", (300, 1_048_588, 0, -5)),
    ("min.insync.replicas", (1, 2, 0)),
    ("unclean.leader.election.enable", ("true", "false", "maybe")),
    ("preallocate", ("true", "false")),
    ("file.delete.delay.ms", (10**9,)),
    ("cleanup.policy", ("delete", "compact,delete,none", "shrink")),
    ("min.cleanable.dirty.ratio", (0.7, 2, -1, "x")),
    ("leader.replication.throttled.replicas", ("*", "0:1", "x")),
    ("remote.storage.enable", ("false",)),
    ("no.such.config", ("1",)),
    ("flush.messages", (1, 3, 0)),
)
"""
What is set, sensible and not.
"""


def config_changes(script: Script) -> None:
    """
    Options are set, refused and deleted while batches arrive.
    """
    chance = script.chance
    script.create(retention_ms=-1, segment_index_bytes=1 << 18)
    for number in rounds(script, 8):
        name, values = chance.choice(CHANGES)
        value = chance.choice((None, *values, *values))
        script.alter({name: None if value is None else str(value)})
        script.produce(batch(script))
        if number % 4 == 3:
            script.describe_configs()


def more_partitions(script: Script) -> None:
    """
    Partitions are added, to no more than can be.
    """
    chance = script.chance
    script.create(retention_ms=-1, internal_segment_bytes=2000)
    for _ in rounds(script, 4):
        for partition in range(script.partitions):
            script.produce(batch(script), partition=partition)
        count = script.partitions + chance.choice((-1, 0, 1, 1, 2))
        if script.partitions < 6:
            script.create_partitions(count)
