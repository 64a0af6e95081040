from __future__ import annotations

import struct

import pytest

from barnabas.protocol.compression import CompressionType, CorruptCompressedData, compress
from barnabas.protocol.errors import CorruptMessage, InvalidRecord
from barnabas.protocol.records.batch import (
    LegacyBatch,
    RecordBatch,
    batches,
    build_batch,
    read_legacy_batch,
)
from barnabas.protocol.records.record import Record, SimpleRecord
from tests.support.legacy_messages import (
    LOG_APPEND_TIME,
    Legacy,
    legacy_message,
    legacy_wrapper,
)
from tests.support.some import some

PACKED = [CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4]
THREE = [Legacy(at, b"k", b"value %d" % at, 100 + at) for at in range(3)]


def only(data: bytes) -> RecordBatch:
    (batch,) = batches(data)
    assert isinstance(batch, LegacyBatch)
    return batch


def test_old_message_is_read_as_a_batch_of_its_own() -> None:
    old = legacy_message(0, 7, b"a", b"1")
    newer = legacy_message(1, 8, None, None, timestamp=42)
    newest = bytes(build_batch([SimpleRecord(50, b"c", b"3")], base_offset=9))

    read = list(batches(old + newer + newest))

    assert [(7, 7, 0), (8, 8, 1), (9, 9, 2)] == [
        (batch.base_offset, batch.last_offset, batch.magic) for batch in read
    ]
    assert [-1, 42, 50] == [batch.max_timestamp for batch in read]
    assert [len(old), len(newer), len(newest)] == [batch.size for batch in read]
    assert all(batch.is_valid() for batch in some(read))
    assert [
        Record(7, -1, b"a", b"1"),
        Record(8, 42, None, None),
        Record(9, 50, b"c", b"3"),
    ] == [record for batch in read for record in batch.records()]


def test_a_message_that_ends_before_its_timestamp_has_none() -> None:
    message = bytes.fromhex("00000000 01 00")
    data = (7).to_bytes(8, "big") + len(message).to_bytes(4, "big") + message

    batch = read_legacy_batch(memoryview(data))

    assert (7, 1, -1) == (batch.base_offset, batch.magic, batch.max_timestamp)


def test_old_message_has_neither_producer_nor_leader_epoch() -> None:
    """
    Whatever attribute bits it has: they had no meaning then.
    """
    batch = only(legacy_message(1, 3, b"a", b"1", timestamp=5, attributes=0x70))

    assert not batch.has_producer_id
    assert not batch.is_transactional
    assert not batch.is_control
    assert batch.delete_horizon_ms is None
    assert -1 == batch.partition_leader_epoch
    assert -1 == batch.last_sequence


@pytest.mark.parametrize("codec", PACKED)
@pytest.mark.parametrize("magic", [0, 1])
def test_wrapper_message_is_read_as_a_batch_of_its_contents(
    magic: int, codec: CompressionType
) -> None:
    """
    Inner offsets are absolute in version 0 and relative in version 1.
    """
    first = 40
    inner = [message._replace(offset=message.offset + first * (1 - magic)) for message in THREE]

    batch = only(legacy_wrapper(magic, codec, inner, offset=42, timestamp=102))

    assert (40, 42, 3) == (batch.base_offset, batch.last_offset, batch.record_count)
    assert codec is batch.compression
    times = [100, 101, 102] if magic else [-1] * 3
    assert [
        Record(first + at, time, b"k", b"value %d" % at) for at, time in enumerate(times)
    ] == list(batch.records())


def test_log_append_time_of_a_wrapper_applies_to_its_contents() -> None:
    data = legacy_wrapper(
        1, CompressionType.GZIP, THREE, offset=2, timestamp=999, attributes=LOG_APPEND_TIME
    )

    assert [999] * 3 == [record.timestamp for record in only(data).records()]


def test_offset_gaps_left_by_compaction_are_kept() -> None:
    batch = only(legacy_wrapper(1, CompressionType.GZIP, THREE[::2], offset=12))

    assert (10, 12, 2) == (batch.base_offset, batch.last_offset, batch.record_count)
    assert [10, 12] == [record.offset for record in batch.records()]


def test_wrapper_left_at_offset_0_by_librdkafka_counts_from_there() -> None:
    assert [0, 1, 2] == [
        record.offset
        for record in only(legacy_wrapper(1, CompressionType.GZIP, THREE, offset=0)).records()
    ]


def test_checksum_of_an_old_message_covers_everything_behind_it() -> None:
    data = bytearray(legacy_message(1, 3, b"key", b"value", timestamp=5))
    for at in range(16, len(data)):
        data[at] ^= 1
        if at > 16:
            assert not only(bytes(data)).is_valid(), at
            with pytest.raises(CorruptMessage, match="Record is corrupt"):
                only(bytes(data)).ensure_valid()
        data[at] ^= 1


def test_truncated_wrapper_is_no_batch_or_an_error_of_its_records() -> None:
    """
    The latter if the size field matches the truncated data.
    """
    whole = legacy_message(1, 3, b"key", b"value", timestamp=5)

    for size in range(26, len(whole)):
        assert [] == list(batches(whole[:size]))
        cut = whole[:8] + struct.pack(">i", size - 12) + whole[12:size]
        with pytest.raises(InvalidRecord, match=r"ends before|newLimit > capacity"):
            list(only(cut).records())


@pytest.mark.parametrize(
    ("data", "error", "sentence"),
    [
        (
            legacy_message(1, 3, None, b"no stream", attributes=CompressionType.GZIP),
            CorruptCompressedData,
            "gzip",
        ),
        (legacy_message(1, 3, None, None, attributes=2), InvalidRecord, "null value"),
        (legacy_message(1, 3, None, b"", attributes=4), InvalidRecord, "compressionType"),
        (
            legacy_wrapper(1, CompressionType.GZIP, THREE, offset=1),
            InvalidRecord,
            "wrapper offset '1' is less than the last inner message offset '2'",
        ),
    ],
    ids=["stream", "null", "zstd", "offset"],
)
def test_wrapper_that_cannot_be_decompressed_has_only_its_last_offset(
    data: bytes, error: type[Exception], sentence: str
) -> None:
    """
    That suffices to load the log and to read the batches around it.
    """
    batch = only(data)

    assert batch.base_offset == batch.last_offset
    with pytest.raises(error, match=sentence):
        list(batch.records())


def test_nested_wrappers_are_refused() -> None:
    inner = legacy_message(1, 0, None, b"x", attributes=1)

    stream = bytes(compress(CompressionType.GZIP, inner))
    data = legacy_message(1, 0, None, stream, attributes=CompressionType.GZIP)

    with pytest.raises(InvalidRecord, match="must not be compressed"):
        list(only(data).records())
