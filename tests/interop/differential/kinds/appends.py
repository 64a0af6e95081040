"""
Batches that are all right, on topics of all kinds.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.protocol.compression import CompressionType
from tests.interop.differential.recipes import Batch
from tests.interop.differential.scripts import CODECS, HOUR_MS, MINUTE_MS, Script
from tests.interop.differential.waiting import Settled

BYTES = (0, 1, 9, 40, 100, 100, 300, 1000, 5000)
OF_ONE_MIND = 3
"""Below this level, versions of the LZ4 library make different choices."""
COUNTS = (1, 1, 1, 2, 3, 5, 10, 40)


def times(script: Script, count: int) -> tuple[int, ...]:
    """
    Timestamps that stand still, grow, jump, go back or are missing.
    """
    chance = script.chance
    start = script.now_ms - chance.choice((0, 0, 1, 1000, MINUTE_MS, HOUR_MS, 30 * HOUR_MS))
    match chance.randrange(12):
        case 0:
            return (-1,) * count
        case 1:
            return tuple(start - 1000 * n for n in range(count))
        case 2 | 3:
            return tuple(start + chance.randrange(-HOUR_MS, HOUR_MS // 2) for _ in range(count))
        case 4:
            return (chance.choice((0, 1, 1000)),) * count
        case 5 | 6:
            return (start,) * count
        case _:
            return tuple(start + 7 * n for n in range(count))


def batch(script: Script, *codecs: CompressionType) -> Batch:
    chance = script.chance
    count = chance.choice(COUNTS)
    return Batch(
        times=times(script, count),
        value_bytes=chance.choice(BYTES),
        keys=chance.choice((0, 3, 100)),
        tombstones=chance.choice((0.0, 0.0, 0.3)),
        headers=chance.choice((0, 0, 0, 1, 3)),
        codec=chance.choice(codecs or CODECS),
        seed=chance.randrange(1 << 30),
    )


def rounds(script: Script, count: int, *, settles: bool = False) -> Iterator[int]:
    """
    So many steps in each of the three acts, each of which ends with a look at everything.

    Args:
        settles: whether the brokers have something to do by themselves before that.
    """
    for number in range(3 * count):
        yield number
        if number % count == count - 1:
            if settles:
                script.do(Settled(script.topic, range(script.partitions)))
            script.probe(3)
            if script.act < 2:
                script.next_act()


def appends(script: Script) -> None:
    """
    Index intervals, index sizes, segment sizes, all codecs.
    """
    chance = script.chance
    script.create(
        partitions=chance.choice((1, 1, 2)),
        index_interval_bytes=chance.choice((0, 1, 200, 4096)),
        # Between these Kafka may not start again after a crash: "full-index-after-crash".
        segment_index_bytes=chance.choice((12, 1200, 1 << 18)),
        internal_segment_bytes=chance.choice((1000, 5000, 20000, 1 << 20)),
        retention_ms=-1,
    )
    for _ in rounds(script, 8):
        partition = chance.randrange(script.partitions)
        acks = chance.choice((-1, -1, 1, 0))
        script.produce(batch(script), partition=partition, acks=acks)


def rolling(script: Script) -> None:
    """
    Segments that end by time: the jitter is none, timestamps jump.
    """
    chance = script.chance
    script.create(
        segment_ms=chance.choice((1, 500, MINUTE_MS, HOUR_MS)),
        segment_jitter_ms=0,
        internal_segment_bytes=chance.choice((3000, 1 << 20)),
        index_interval_bytes=chance.choice((0, 100, 4096)),
        retention_ms=-1,
    )
    # A segment whose first batch has no timestamp ends by the broker's own clock.
    for _ in rounds(script, 10):
        some = batch(script)
        if -1 in some.times:
            continue
        script.produce(some)


def recompression(script: Script) -> None:
    """
    Topics that store another codec than they are sent.
    """
    chance = script.chance
    kind = chance.choice(("uncompressed", "gzip", "snappy", "lz4", "zstd"))
    levels = {"gzip": (1, 6, 9), "lz4": (1, 3, 9, 17), "zstd": (-5, 3, 10)}.get(kind, ())
    level = {f"compression_{kind}_level": chance.choice(levels)} if levels else {}
    script.loosely = (
        kind in {"snappy", "zstd"} or level.get("compression_lz4_level", 9) < OF_ONE_MIND
    )
    script.create(
        compression_type=kind,
        retention_ms=-1,
        # Where the sizes of batches differ, nothing else may depend on them.
        internal_segment_bytes=1 << 24 if script.loosely else 20_000,
        index_interval_bytes=2**31 - 1 if script.loosely else 4096,
        **level,
    )
    for _ in rounds(script, 6):
        script.produce(batch(script))


def append_time(script: Script) -> None:
    """
    Topics that store the time of arrival.
    """
    chance = script.chance
    script.create(
        message_timestamp_type="LogAppendTime",
        compression_type=chance.choice(("producer", "producer", "uncompressed", "gzip")),
        internal_segment_bytes=chance.choice((2000, 1 << 20)),
        index_interval_bytes=chance.choice((0, 300)),
        retention_ms=-1,
    )
    for _ in rounds(script, 5):
        script.produce(batch(script))


def time_limits(script: Script) -> None:
    """
    Timestamps that are too old or too far ahead for the topic.
    """
    chance = script.chance
    script.create(
        message_timestamp_before_max_ms=chance.choice((3 * HOUR_MS, 24 * HOUR_MS, 2**63 - 1)),
        message_timestamp_after_max_ms=chance.choice((MINUTE_MS, HOUR_MS, 2**63 - 1)),
        message_timestamp_type=chance.choice(("CreateTime", "CreateTime", "LogAppendTime")),
        compression_type=chance.choice(("producer", "producer", "lz4", "uncompressed")),
        retention_ms=-1,
    )
    for _ in rounds(script, 6):
        some = batch(script)
        ahead = chance.choice((0, 0, 12, 200)) * HOUR_MS
        moved = tuple(max(time + ahead * (chance.random() < 0.5), -1) for time in some.times)
        script.produce(
            Batch(
                times=moved,
                codec=some.codec,
                value_bytes=some.value_bytes,
                seed=some.seed,
                keys=some.keys,
            )
        )
