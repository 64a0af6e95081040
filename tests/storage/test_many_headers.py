from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import build_batch, read_batch
from barnabas.protocol.records.record import Header, SimpleRecord
from barnabas.protocol.records.record_headers import StoredHeaders
from barnabas.storage.log.log import Log
from barnabas.storage.verify.batch import check_batch
from tests.support.bombs import memory_below
from tests.support.logs import config_with, new_log
from tests.support.segments import FIRST_TIMESTAMP

COUNT: Final = 50_000
PAYLOAD_BYTES: Final = 2 * COUNT
"""A name and a value of no bytes have a length each."""
BOUND: Final = 6 * PAYLOAD_BYTES
"""A few copies of the payload. An object for each header takes more than 60 times its bytes."""


def batch(codec: CompressionType = CompressionType.GZIP) -> memoryview:
    headers = (Header("", b""),) * COUNT
    record = SimpleRecord(FIRST_TIMESTAMP, b"key", b"value", headers)
    return memoryview(build_batch([record], compression=codec))


def walk(log: Log) -> None:
    (stored,) = log.active_segment.log.batches()
    assert [b"key"] == [record.key for record in stored.records()]


def verify(log: Log) -> None:
    (stored,) = log.active_segment.log.batches()
    assert check_batch(stored, lambda *_: None)


def show_the_first_headers(log: Log) -> None:
    (stored,) = log.active_segment.log.batches()
    (record,) = stored.records()
    assert COUNT == len(record.headers)
    assert [Header("", b"")] * 3 == [*record.headers[:3]]


READERS: Final = [walk, verify, show_the_first_headers]


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_reading_a_record_with_many_headers_takes_memory_for_its_bytes_only(
    read: Callable[[Log], None],
) -> None:
    log = new_log()
    log.append_as_leader(batch(), 0)
    log.update_high_watermark(log.log_end_offset)

    with memory_below(BOUND):
        read(log)


def test_recompressing_a_record_with_many_headers_takes_memory_for_its_bytes_only() -> None:
    log = new_log(config=config_with(compression_type="zstd"))
    sent = batch()

    with memory_below(BOUND):
        log.append_as_leader(sent, 0)
    (stored,) = log.active_segment.log.batches()
    assert CompressionType.ZSTD == stored.compression
    (record,) = stored.records()
    assert COUNT == len(record.headers)


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (Header("a", b"1"),),
        (Header("a", b"1"), Header("a", None), Header("", b""), Header("ü" * 70, b"x" * 200)),
    ],
)
def test_stored_headers_equal_the_ones_that_were_sent(headers: tuple[Header, ...]) -> None:
    sent = build_batch([SimpleRecord(0, b"k", b"v", headers), SimpleRecord(0, None, None)])

    first, second = read_batch(memoryview(sent)).records()

    assert headers == first.headers
    assert first.headers == headers
    assert [*headers] == [*first.headers]
    assert headers[::-1] == tuple(first.headers[::-1])
    assert headers[-1:] == tuple(first.headers[-1:])
    for place in range(-len(headers), len(headers)):
        assert headers[place] == first.headers[place]
    with pytest.raises(IndexError):
        first.headers[len(headers)]
    assert () == second.headers
    assert first.headers != (*headers, Header("b", None))
    assert hash(first.headers) == hash(headers)


def test_names_that_are_no_utf_8_have_replacement_characters() -> None:
    assert [Header("�", b"")] == StoredHeaders(b"\x02\xff\x00", 1)
