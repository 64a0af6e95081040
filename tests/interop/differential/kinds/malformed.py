"""
Batches that are not as they should be.
"""

from __future__ import annotations

from dataclasses import replace

from barnabas.protocol.compression import CompressionType
from tests.interop.differential.kinds.appends import batch, rounds
from tests.interop.differential.recipes import (
    HEADER_FIELDS,
    Batch,
    Change,
    Cut,
    Extra,
    HeaderField,
    Producer,
    Splice,
)
from tests.interop.differential.scripts import Script

BITS = {"b": 8, "h": 16, "i": 32, "I": 32, "q": 64}
VARINTS = (b"\x80", b"\xff\xff\xff\xff\x0f", b"\xff" * 4 + b"\x7f", b"\xff" * 10, b"\x01", b"\0")


def header_change(script: Script) -> Change:
    """
    Some field of the header, with a value that is mostly wrong.
    """
    chance = script.chance
    name = chance.choice(tuple(HEADER_FIELDS))
    letter = HEADER_FIELDS[name][1]
    if name == "attributes":
        return HeaderField(name, chance.choice((8, 16, 32, 48, 64, 128, 0x7F00, 5, 6, 7, 1, 2)))
    most = 2 ** (BITS[letter] - 1) - 1
    if letter == "I":
        return HeaderField(name, chance.randrange(2**32))
    return HeaderField(name, chance.choice((-2, -1, 0, 1, 2, 3, 49, 50, 100, most, -most - 1)))


def record_change(script: Script) -> Change:
    chance = script.chance
    position = chance.randrange(12) if chance.random() < 0.7 else chance.randrange(200)
    match chance.randrange(5):
        case 0:
            return Splice(position, 1, bytes([chance.randrange(256)]))
        case 1:
            return Splice(position, 1, chance.choice(VARINTS))
        case 2:
            return Splice(position, chance.randrange(1, 5), b"")
        case 3:
            return Splice(position, 0, chance.choice(VARINTS))
        case _:
            return Splice(position, 10_000, b"")


def change(script: Script) -> Change:
    chance = script.chance
    match chance.randrange(10):
        case 0 | 1 | 2 | 3:
            return header_change(script)
        case 4 | 5 | 6 | 7:
            return record_change(script)
        case 8:
            return Cut(chance.randrange(1, 200))
        case _:
            return Extra(chance.randbytes(chance.choice((1, 11, 12, 13, 16, 17, 18, 60, 100))))


def spoiled(script: Script, some: Batch) -> Batch:
    """
    The batch with one or two things wrong.
    """
    chance = script.chance
    changes = tuple(change(script) for _ in range(chance.choice((1, 1, 1, 2))))
    return replace(some, changes=changes, sealed=chance.random() < 0.85)


def malformed(script: Script) -> None:
    """
    Everything about a batch may be wrong.
    """
    chance = script.chance
    script.create(
        compression_type=chance.choice(("producer", "producer", "uncompressed", "gzip", "lz4")),
        cleanup_policy=chance.choice(("delete", "delete", "delete", "compact")),
        message_timestamp_type=chance.choice(("CreateTime", "CreateTime", "LogAppendTime")),
        min_cleanable_dirty_ratio=1,
        max_message_bytes=chance.choice((1_048_588, 1_048_588, 400)),
        retention_ms=-1,
    )
    for _ in rounds(script, 20):
        some = batch(script)
        if chance.random() < 0.3:
            some = replace(some, producer=Producer(chance.choice((-2, -1, 9)), *_numbers(script)))
        match chance.randrange(12):
            case 0:
                script.produce(batch(script), spoiled(script, some))
            case 1:
                script.produce(batch(script))
            case _:
                script.produce(spoiled(script, some))


def _numbers(script: Script) -> tuple[int, int]:
    return script.chance.choice((-1, 0, 0)), script.chance.choice((-1, 0, 0))


def damaged_codecs(script: Script) -> None:
    """
    Compressed records that cannot be decompressed, or not to the end.
    """
    chance = script.chance
    target = chance.choice(("producer", "producer", "uncompressed", "zstd"))
    script.loosely = target == "zstd"
    script.create(
        compression_type=target,
        retention_ms=-1,
        index_interval_bytes=2**31 - 1 if script.loosely else 4096,
    )
    codecs = tuple(codec for codec in CompressionType if codec)
    for _ in rounds(script, 20):
        some = batch(script, *codecs)
        script.produce(replace(some, changes=(record_change(script),)))
