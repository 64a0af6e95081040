from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from barnabas.protocol.compression import CompressionType, DecompressedTooLarge
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.records.batch import build_batch, read_batch
from barnabas.protocol.records.batch.legacy import read_legacy_batch
from barnabas.protocol.records.record import (
    Header,
    Record,
    SimpleRecord,
    encode_records,
    iter_records,
    iter_records_in_pieces,
)
from tests.support.bombs import memory_below
from tests.support.legacy_messages import Legacy, legacy_wrapper

MIB: Final = 1 << 20
COMPRESSED: Final = [codec for codec in CompressionType if codec]
SIZES: Final = (0, 1, 50, 126, 127, 8000, 8190, 8191, 8192, 9000, 200_000)
ROUNDS: Final = 300


def some_records(chance: random.Random) -> list[Record]:
    return [
        Record(
            offset,
            chance.randrange(1000),
            chance.choice([None, b"key"]),
            chance.choice([None, bytes(chance.choice(SIZES))]),
            [Header("h", b"v")] * chance.choice([0, 0, 3]),
        )
        for offset in range(chance.randrange(1, 30))
    ]


def cut(data: bytes, chance: random.Random) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = chance.choice([1, 2, 3, 100, 16384, 16384])
        yield data[at : at + size]
        at += size


def read(records: Callable[[], Iterator[Record]]) -> tuple[list[Record], str]:
    """
    The records, and the error that ends them.
    """
    found = []
    try:
        for record in records():
            found.append(record)  # those before an error count
    except KafkaError as error:
        return found, str(error)
    return found, ""


@pytest.mark.parametrize("seed", range(4))
def test_records_in_pieces_are_those_in_one_piece(seed: int) -> None:
    """
    So are the errors of records that are malformed, cut off, or too many.
    """
    chance = random.Random(seed)
    for _ in range(ROUNDS // 4):
        records = some_records(chance)
        data = encode_records(records, 0, 0)
        count = len(records) + chance.choice([0, 0, 0, 1, -1])
        if chance.random() < 0.5:
            data[chance.randrange(len(data))] = chance.randrange(256)
        if chance.random() < 0.2:
            del data[chance.randrange(len(data)) :]
        whole = bytes(data)

        def at_once(whole: bytes = whole, count: int = count) -> Iterator[Record]:
            return iter_records(whole, count, streamed=True)

        def in_pieces(whole: bytes = whole, count: int = count) -> Iterator[Record]:
            return iter_records_in_pieces(
                cut(whole, chance), count, base_offset=0, base_timestamp=0, log_append_time=None
            )

        assert read(at_once) == read(in_pieces)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_reading_records_takes_the_memory_of_the_largest_one(codec: CompressionType) -> None:
    value = bytes(MIB)
    records = [SimpleRecord(1, b"k", value if number % 8 else b"") for number in range(32)]
    batch = read_batch(memoryview(build_batch(records, compression=codec)))

    # snappy gives what it has compressed at a time, LZ4 a block.
    with memory_below(9 * MIB):
        found = sum(1 for _ in batch.records())

    assert 32 == found


@pytest.mark.parametrize("codec", COMPRESSED)
def test_records_beyond_a_limit_are_not_decompressed(codec: CompressionType) -> None:
    records = [SimpleRecord(1, b"k", bytes(MIB))] * 8
    batch = read_batch(memoryview(build_batch(records, compression=codec)))

    with pytest.raises(DecompressedTooLarge):
        list(batch.records(4 * MIB))
    with pytest.raises(DecompressedTooLarge):
        list(batch.outlines(4 * MIB))
    assert 8 == len(list(batch.records(9 * MIB)))


def test_opening_a_wrapper_takes_the_memory_of_one_piece() -> None:
    """
    So does reading what it wraps, which is what ``unwrapped`` returns.
    """
    messages = [Legacy(offset, None, b"v") for offset in range(5_000)]
    data = memoryview(legacy_wrapper(1, CompressionType.GZIP, messages))
    expected = [message.offset for message in read_legacy_batch(data).message.unwrapped()]

    with memory_below(MIB // 2):
        batch = read_legacy_batch(data)
        count = sum(1 for _ in batch.records())
        outlines = sum(1 for _ in batch.outlines())

    assert 5_000 == batch.record_count == count == outlines
    assert expected == [record.offset for record in batch.records()]


def test_large_message_in_a_wrapper_is_read() -> None:
    messages = [Legacy(0, b"k", b"v"), Legacy(1, b"k", bytes(8 * MIB)), Legacy(2, b"k", b"w")]
    batch = read_legacy_batch(memoryview(legacy_wrapper(1, CompressionType.GZIP, messages)))

    assert [1, 8 * MIB, 1] == [len(record.value or b"") for record in batch.records()]
