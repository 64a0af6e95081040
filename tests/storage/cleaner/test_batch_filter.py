from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.errors import InvalidRecord, UnknownServerError
from barnabas.protocol.records.batch import (
    NO_TIMESTAMP,
    RecordBatch,
    batches,
    build_batch,
    read_batch,
)
from barnabas.protocol.records.control import ControlRecordType, EndTransactionMarker
from barnabas.protocol.records.record import Header, SimpleRecord, encode_records
from barnabas.storage.cleaner.batch_filter import RECORDS_PER_STEP, BatchFilter, CleanedBatches
from barnabas.storage.cleaner.offset_map import BYTES_PER_ENTRY, OffsetMap
from barnabas.storage.cleaner.stats import CleanerStats
from barnabas.storage.cleaner.transactions import CleanedTransactionMetadata
from barnabas.storage.index.txn_index import AbortedTxn
from barnabas.storage.producers.entry import LastRecord
from tests.support.clock import StillClock
from tests.support.record_bytes import sealed

NOW_MS = 1_700_000_100_000
DAY_MS = 86_400_000
HORIZON_MS = NOW_MS + DAY_MS
FIRST = 1_700_000_000_000


class Filter:
    def __init__(self, keys: dict[bytes, int] | None = None, **options: Any) -> None:
        self.offset_map = OffsetMap(1000 * BYTES_PER_ENTRY)
        for key, offset in (keys or {}).items():
            self.offset_map.put(key, offset)
        self.offset_map.update_latest_offset(1000)
        self.transactions = CleanedTransactionMetadata()
        self.stats = CleanerStats(StillClock())
        self.pauses = 0
        given: dict[str, Any] = {
            "now_ms": NOW_MS,
            "delete_retention_ms": DAY_MS,
            "legacy_horizon_ms": 0,
            "end_offset": 10_000,
            "pause": self._pause,
        }
        self.filter = BatchFilter(
            self.offset_map, self.transactions, self.stats, **{**given, **options}
        )

    def _pause(self) -> None:
        self.pauses += 1

    def run(self, *sources: bytes | bytearray | memoryview) -> bytes:
        data = b"".join(sources)
        out = CleanedBatches(data)
        for batch in batches(data):
            self.filter.filter(batch, data, out)
        self.largest_offset = out.largest_offset
        return bytes(out.take())


def three_records(**options: Any) -> bytearray:
    """
    a, a tombstone of b, and c, from offset 10 on, by an idempotent producer.
    """
    records = [
        SimpleRecord(FIRST, b"a", b"1"),
        SimpleRecord(FIRST + 1, b"b", None),
        SimpleRecord(FIRST + 2, b"c", b"2"),
    ]
    given: dict[str, Any] = {
        "base_offset": 10,
        "partition_leader_epoch": 3,
        "producer_id": 4000,
        "producer_epoch": 0,
        "base_sequence": 0,
    }
    return build_batch(records, **{**given, **options})


def only(data: bytes) -> RecordBatch:
    batch = read_batch(memoryview(data))
    assert len(data) == batch.size
    assert batch.is_valid()
    return batch


@pytest.mark.scenario(73)
def test_retained_tombstone_gets_a_delete_horizon() -> None:
    expected = (
        "000000000000000a 00000048 00000003 02 e2278cf7 0040 00000002 0000018bd50d4aa0"
        "0000018bcfe56802 0000000000000fa0 0000 00000000 00000002"
        "14 00 bd8abf52 02 02 62 01 00 16 00 bb8abf52 04 02 63 02 32 00"
    )
    cleaned = Filter({b"a": 50}).run(three_records())

    assert bytes.fromhex(expected) == cleaned
    assert HORIZON_MS == only(cleaned).delete_horizon_ms == 1_700_086_500_000
    assert [FIRST + 1, FIRST + 2] == [record.timestamp for record in only(cleaned).records()]


@pytest.mark.scenario(73)
def test_tombstone_is_removed_at_its_delete_horizon_and_not_before() -> None:
    marked = Filter({b"a": 50}).run(three_records())

    before = Filter(now_ms=HORIZON_MS - 1)
    assert marked == before.run(marked)

    gone = only(Filter(now_ms=HORIZON_MS).run(marked))
    assert [12] == [record.offset for record in gone.records()]
    # The horizon outlives the tombstones.
    assert HORIZON_MS == gone.delete_horizon_ms


@pytest.mark.scenario(74)
def test_header_of_the_last_batch_of_a_producer_is_retained() -> None:
    expected = (
        "000000000000000a 00000031 00000003 02 e04cb751 0000 00000002 ffffffffffffffff"
        "0000018bcfe56802 0000000000000fa0 0000 00000000 00000000"
    )
    all_gone = {b"a": 50, b"b": 50, b"c": 50}
    test = Filter(all_gone)
    test.filter.last_records = {4000: LastRecord(12, 0)}

    assert bytes.fromhex(expected) == test.run(three_records())
    assert 12 == test.largest_offset
    test.filter.last_records = {4000: LastRecord(13, 0)}
    assert b"" == test.run(three_records())
    assert b"" == Filter(all_gone).run(three_records())


def test_retained_empty_batch_has_neither_codec_nor_delete_horizon() -> None:
    test = Filter({b"a": 50, b"b": 50, b"c": 50})
    test.filter.last_records = {4000: LastRecord(12, 0)}
    options = {"log_append_time": FIRST + 9, "is_transactional": True, "delete_horizon_ms": 7}

    header = only(test.run(three_records(compression=CompressionType.ZSTD, **options)))

    assert (61, 0, NO_TIMESTAMP) == (header.size, header.record_count, header.base_timestamp)
    assert (0, None, True) == (header.codec, header.delete_horizon_ms, header.is_transactional)
    assert (1, FIRST + 9) == (header.timestamp_type, header.max_timestamp)
    assert (12, 2) == (header.last_offset, header.last_sequence)


def test_fully_retained_batches_are_copied_in_contiguous_pieces() -> None:
    """
    The checksum is not verified.
    """
    broken = three_records(base_offset=20)
    del broken[-8:]
    broken[8:12] = (len(broken) - 12).to_bytes(4)
    first = build_batch([SimpleRecord(FIRST, b"a", b"1")], base_offset=1)
    second = build_batch([SimpleRecord(FIRST, b"b", b"1")], base_offset=2)
    second[17] ^= 0xFF
    test = Filter()
    data = bytes(first + second)
    out = CleanedBatches(data)

    for batch in batches(data):
        test.filter.filter(batch, data, out)
    taken = out.take()

    assert taken.obj is data
    assert data == bytes(taken)
    assert 2 == out.largest_offset
    with pytest.raises(InvalidRecord):
        test.run(broken)


def test_cleaned_batches_keep_the_order_of_the_log() -> None:
    batch = {
        "whole": build_batch([SimpleRecord(FIRST, b"x", b"1")]),
        "part": build_batch([SimpleRecord(FIRST, b"a", b"1"), SimpleRecord(FIRST, b"x", b"2")]),
        "gone": build_batch([SimpleRecord(FIRST, b"a", b"1")]),
    }
    keys = {b"a": 900}
    alone = {name: Filter(keys).run(data) for name, data in batch.items()}
    names = [name for first in batch for second in batch for name in (first, "whole", second)]

    assert b"" == alone["gone"]
    assert b"".join(alone[name] for name in names) == Filter(keys).run(
        *(batch[name] for name in names)
    )


def test_batch_that_loses_records_keeps_its_offsets_base_timestamp_and_producer_fields() -> None:
    source = read_batch(memoryview(three_records(is_transactional=True)))
    cleaned = only(Filter({b"b": 50, b"c": 50}).run(source.data))

    assert [(10, FIRST)] == [(record.offset, record.timestamp) for record in cleaned.records()]
    changed = {"batch_length", "crc", "max_timestamp", "record_count", "buffer", "position"}
    kept = [name for name in RecordBatch._fields if name not in changed]
    assert [getattr(source, name) for name in kept] == [getattr(cleaned, name) for name in kept]
    assert FIRST == cleaned.max_timestamp


def test_largest_retained_offset_is_that_of_a_record_or_of_a_whole_batch() -> None:
    """
    As in Kafka, which uses this offset to decide whether a segment can hold the result.
    """
    whole, part = Filter(), Filter({b"c": 50})
    whole.run(build_batch([SimpleRecord(FIRST, b"a", b"1")] * 3, base_offset=10))
    part.run(three_records())

    assert (12, 11) == (whole.largest_offset, part.largest_offset)


def test_log_append_time_survives_cleaning() -> None:
    cleaned = only(Filter({b"a": 50}).run(three_records(log_append_time=FIRST + 500)))

    assert (HORIZON_MS, FIRST + 500) == (cleaned.base_timestamp, cleaned.max_timestamp)
    assert [FIRST + 500] * 2 == [record.timestamp for record in cleaned.records()]


@pytest.mark.parametrize("codec", [codec for codec in CompressionType if codec])
def test_compressed_batch_stays_compressed_after_cleaning(codec: CompressionType) -> None:
    source = three_records(compression=codec)
    cleaned = only(Filter({b"a": 50}).run(source))

    assert codec == cleaned.compression
    assert [11, 12] == [record.offset for record in cleaned.records()]


def test_fully_retained_compressed_batch_is_not_compressed_again() -> None:
    source = build_batch([SimpleRecord(FIRST, b"a", bytes(999))], compression=CompressionType.GZIP)

    assert source == Filter().run(source)


@pytest.mark.parametrize(
    ("sent", "options"),
    [({}, {"delete_retention_ms": 2**63 - 1}), ({"delete_horizon_ms": -5}, {"now_ms": -6})],
    ids=["Kafka's sum overflows", "a producer has sent it"],
)
def test_negative_delete_horizon_is_not_written(
    sent: dict[str, Any], options: dict[str, Any]
) -> None:
    cleaned = only(Filter({b"c": 50}, **options).run(three_records(**sent)))

    assert cleaned.delete_horizon_ms is None
    assert FIRST == cleaned.base_timestamp


def test_first_retained_record_sets_the_base_timestamp() -> None:
    cleaned = only(Filter({b"a": 50, b"b": 50}).run(three_records()))

    assert [(12, FIRST + 2)] == [(each.offset, each.timestamp) for each in cleaned.records()]
    assert FIRST + 2 == cleaned.base_timestamp == cleaned.max_timestamp
    assert 10 == cleaned.base_offset


def test_cleaning_rewrites_records_in_kafkas_encoding() -> None:
    header = Header("\N{REPLACEMENT CHARACTER}", b"")
    records = [SimpleRecord(FIRST, b"a", b"1"), SimpleRecord(FIRST, b"b", b"2", (header,))]
    source = build_batch(records)
    strange = bytearray(source.replace("\N{REPLACEMENT CHARACTER}".encode(), b"\xff\xff\xff"))

    cleaned = only(Filter({b"a": 50}).run(strange))

    (record,) = cleaned.records()
    assert "\N{REPLACEMENT CHARACTER}" * 3 == record.headers[0].key
    assert b"\xff\xff\xff" not in bytes(cleaned.payload)


def test_records_without_a_key_are_removed_and_counted() -> None:
    source = build_batch([SimpleRecord(FIRST, None, b"1"), SimpleRecord(FIRST, b"b", b"2")])
    test = Filter()

    assert [1] == [record.offset for record in only(test.run(source)).records()]
    stats = test.stats
    assert (2, 1, 1) == (stats.messages_read, stats.invalid_messages_read, stats.messages_written)
    assert len(source) == stats.bytes_read
    assert 0 < stats.bytes_written < stats.bytes_read


# Transactions.


def marker(kind: ControlRecordType, base_offset: int, **options: Any) -> bytearray:
    given: dict[str, Any] = {"producer_id": 4000, "producer_epoch": 0}
    return EndTransactionMarker(kind, 0).batch(
        FIRST, base_offset=base_offset, **{**given, **options}
    )


@pytest.mark.scenario(78)
def test_aborted_data_is_removed_before_its_marker() -> None:
    data = three_records(is_transactional=True)
    abort = marker(ControlRecordType.ABORT, 13)
    aborted = AbortedTxn(4000, 10, 13, 14)
    first = Filter()
    first.transactions.add_aborted_transactions([aborted])
    assert abort == first.run(data, abort)
    assert 0 == first.stats.messages_read - first.stats.messages_written

    marked = only(Filter().run(abort))
    assert (81, HORIZON_MS) == (marked.size, marked.delete_horizon_ms)

    assert bytes(marked.data) == Filter(now_ms=HORIZON_MS - 1).run(marked.data)
    assert b"" == Filter(now_ms=HORIZON_MS).run(marked.data)


def test_last_marker_of_a_producer_retains_its_header() -> None:
    """
    Once the producer's data is gone, only the marker holds its last epoch.
    """
    marked = marker(ControlRecordType.COMMIT, 13, delete_horizon_ms=NOW_MS)
    test = Filter({b"a": 50, b"b": 50, b"c": 50})
    test.filter.last_records = {4000: LastRecord(None, 0)}

    header = only(test.run(marked))

    assert (61, True, 0) == (header.size, header.is_control, header.record_count)
    assert bytes(header.data) == test.run(header.data)
    assert b"" == test.run(three_records(base_offset=8, is_transactional=True))
    test.filter.last_records = {4000: LastRecord(None, 1)}
    assert b"" == test.run(header.data)


def test_control_records_other_than_markers_are_retained() -> None:
    source = EndTransactionMarker(ControlRecordType.LEADER_CHANGE, 0).batch(FIRST, producer_id=1)

    assert source == Filter().run(source)


# What cannot be written.


def three(deltas: tuple[int, int, int] = (0, 1, 2), **options: Any) -> bytearray:
    """
    A batch of three records, the last of them with key a.
    """
    payload = bytearray()
    for delta, key in zip(deltas, (b"x", b"y", b"a"), strict=True):
        record = build_batch([SimpleRecord(FIRST, key, b"1")])[61:]
        record[3] = 2 * delta
        payload += record
    return sealed(payload, 3, last_offset_delta=9, timestamp=FIRST, **options)


@pytest.mark.parametrize(
    ("source", "error", "sentence"),
    [
        (three((3, 3, 4)), InvalidRecord, "do not grow"),
        (three(base_timestamp=-9), InvalidRecord, "invalid timestamp"),
        (three(is_transactional=True), UnknownServerError, "producer ID"),
        (three(producer_id=5), UnknownServerError, "producer epoch"),
        (three(producer_id=5, producer_epoch=0), UnknownServerError, "sequence"),
    ],
)
def test_malformed_batch_is_only_ever_copied_unchanged(
    source: bytearray, error: type[Exception], sentence: str
) -> None:
    assert source == Filter().run(source)
    with pytest.raises(error, match=sentence):
        Filter({b"a": 900}).run(source)


def test_filter_of_a_large_batch_yields_to_other_threads() -> None:
    records = [SimpleRecord(FIRST, b"%d" % at, b"v") for at in range(3 * RECORDS_PER_STEP)]
    records.append(SimpleRecord(FIRST + 1, b"gone", b"v"))
    test = Filter({b"gone": 5000})
    test.offset_map.update_latest_offset(10_000)

    cleaned = only(test.run(build_batch(records)))

    assert 3 * RECORDS_PER_STEP == cleaned.record_count
    assert 3 == test.pauses
    assert encode_records(cleaned.records(), 0, FIRST) == cleaned.payload
