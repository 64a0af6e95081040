from __future__ import annotations

import random
from typing import Final

import pytest

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import read_batch
from barnabas.protocol.records.record import Record, are_regular, encode_records
from barnabas.protocol.records.record_headers import StoredHeaders
from barnabas.protocol.records.varints import append_varint
from barnabas.storage.log.batch_rebuild import rebuild_batch
from tests.support.many_headers import headers_batch

NAMES: Final = [b"", b"name", b"n" * 63, b"n" * 64, b"n" * 9000, "\u00e9".encode(), b"\xff"]
VALUES: Final = [None, b"", b"v", b"\xff" * 64, b"v" * 9000]
MANY: Final = 20_000


def stored(chance: random.Random) -> StoredHeaders:
    """
    Some headers, most of them as Kafka writes them.
    """
    data = bytearray()
    count = chance.randrange(1, 6)
    for _ in range(count):
        name = chance.choice(NAMES)
        value = chance.choice(VALUES)
        append_varint(data, len(name))
        if chance.random() < 0.1:  # in more bytes than it takes
            data[-1] |= 0x80
            data.append(0)
        data += name
        append_varint(data, -1 if value is None else len(value))
        data += value or b""
    return StoredHeaders(bytes(data), count)


def test_copied_headers_are_those_that_are_written_one_by_one() -> None:
    chance = random.Random(0)
    copied = 0
    for _ in range(500):
        headers = stored(chance)
        copied += are_regular(headers.data, len(headers))

        assert encode_records([Record(0, 0, None, None, headers)], 0, 0) == encode_records(
            [Record(0, 0, None, None, [*headers])], 0, 0
        )

    assert 50 < copied < 450


def test_bytes_that_are_not_so_many_headers_are_not_regular() -> None:
    headers = b"\2a\1" * 3

    assert are_regular(headers, 3)
    assert not are_regular(headers, 2)
    assert not are_regular(headers, 4)
    assert not are_regular(headers[:-1], 3)
    assert not are_regular(b"\1", 1)
    assert not are_regular(b"\2a\3", 1)


def test_rebuilt_batch_makes_no_objects_of_its_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    data = headers_batch(MANY, CompressionType.NONE)
    batch = read_batch(memoryview(data))
    scan = batch.scan()
    # With another base of the timestamps all records are written anew.
    scan.first_timestamp_delta = 1

    def refuse(_: StoredHeaders) -> None:
        raise AssertionError("a header is decoded")

    monkeypatch.setattr(StoredHeaders, "__iter__", refuse)

    rebuilt = rebuild_batch(batch, scan, codec=CompressionType.GZIP, level=None)

    (record,) = read_batch(memoryview(rebuilt)).records()
    assert MANY == len(record.headers)
