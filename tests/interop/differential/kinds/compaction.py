"""
Topics that keep the last record of each key.
"""

from __future__ import annotations

from dataclasses import replace

from barnabas.protocol.compression import CompressionType
from tests.interop.differential.kinds.appends import batch
from tests.interop.differential.recipes import Producer
from tests.interop.differential.scripts import HOUR_MS, Script
from tests.interop.differential.waiting import Cleaned

OF_ONE_MIND = tuple(codec for codec in CompressionType if codec != CompressionType.SNAPPY)


def compaction(script: Script) -> None:
    """
    Everything is appended first and compacted then, so that both brokers clean the same at once.
    """
    chance = script.chance
    script.create(
        cleanup_policy="delete",
        internal_segment_bytes=chance.choice((800, 3000, 10_000)),
        index_interval_bytes=chance.choice((0, 200, 4096)),
        min_cleanable_dirty_ratio=0,
        delete_retention_ms=chance.choice((0, 24 * HOUR_MS)),
        compression_type=chance.choice(("producer", "producer", "uncompressed")),
        retention_ms=-1,
    )
    # Tombstones are written anew with a time of the broker's clock: compressed, each time to
    # another size. And snappy makes other bytes in any case.
    tombstones = chance.choice((0.0, 0.3))
    codecs = (CompressionType.NONE,) if tombstones else OF_ONE_MIND
    sequence = 0
    for act in range(3):
        for _ in range(10):
            some = replace(
                batch(script, *codecs), keys=chance.choice((1, 5, 5, 40)), tombstones=tombstones
            )
            if chance.random() < 0.3:
                some = replace(some, producer=Producer(7000, 0, sequence))
                sequence += len(some.times)
            script.produce(some)
        script.alter({"cleanup.policy": chance.choice(("compact", "compact", "compact,delete"))})
        script.do(Cleaned(script.topic))
        script.alter({"cleanup.policy": "delete"})
        script.probe(3)
        if act < 2:
            script.next_act()
