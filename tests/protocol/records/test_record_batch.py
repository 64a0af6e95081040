from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.errors import CorruptMessage
from barnabas.protocol.records import batch as record_batch
from barnabas.protocol.records.batch import (
    MAGIC_AT,
    RecordBatch,
    TimestampType,
    batches,
    build_batch,
    build_batch_with_offsets,
    decrement_sequence,
    increment_sequence,
    read_batch,
    set_max_timestamp,
)
from barnabas.protocol.records.record import Header, Record, SimpleRecord
from tests.support.record_bytes import THREE_RECORDS

THREE = [
    SimpleRecord(1700000000000, b"k1", b"v1"),
    SimpleRecord(1700000000005, None, b"v2", (Header("h", b"x"), Header("n", None))),
    SimpleRecord(1699999999999, b"k3", None),
]
ABORT = bytes.fromhex(
    "0000000000000000 00000042 ffffffff 02 cea9b64c 0030 00000000 0000018bcfe56800 0000018bcfe56800"
    "0000000000000fa0 0003 ffffffff 00000001 20 00 00 00 08 00000000 0c 000000000009 00"
)
MAX = 2**31 - 1


@pytest.mark.scenario(1)
def test_encoded_batch_has_kafkas_bytes() -> None:
    assert THREE_RECORDS == build_batch(THREE)


def facts(batch: RecordBatch, **names: object) -> dict[str, object]:
    return {name: getattr(batch, name) for name in names}


def test_header_fields_are_read_from_kafkas_positions() -> None:
    batch = read_batch(memoryview(b"xyz" + THREE_RECORDS), 3)

    expected: dict[str, object] = {
        "base_offset": 0,
        "last_offset": 2,
        "next_offset": 3,
        "size": 97,
        "end": 100,
        "partition_leader_epoch": -1,
        "magic": 2,
        "crc": 793853916,
        "base_timestamp": 1700000000000,
        "max_timestamp": 1700000000005,
        "timestamp_type": TimestampType.CREATE_TIME,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "last_sequence": -1,
        "record_count": 3,
        "is_control": False,
        "is_transactional": False,
        "has_producer_id": False,
        "delete_horizon_ms": None,
        "data": THREE_RECORDS,
        "payload": THREE_RECORDS[61:],
    }
    assert expected == facts(batch, **expected)
    assert batch.is_valid()
    assert [Record(i, *record) for i, record in enumerate(THREE)] == list(batch.records())


def test_a_batch_of_another_version_is_refused() -> None:
    data = bytearray(THREE_RECORDS)
    data[MAGIC_AT] = 3

    with pytest.raises(CorruptMessage, match="magic 3"):
        read_batch(memoryview(data))


def test_correct_header_is_not_rewritten() -> None:
    """
    Unknown attribute bits survive if type and time are right, and are cleared otherwise.
    """
    data = bytearray(THREE_RECORDS)
    data[21:23] = b"\x7f\x80"
    before = bytes(data)

    set_max_timestamp(memoryview(data), 0, TimestampType.CREATE_TIME, 1700000000005)
    assert before == data

    set_max_timestamp(memoryview(data), 0, TimestampType.CREATE_TIME, 1700000000006)
    assert b"\0\0" == data[21:23]
    assert read_batch(memoryview(data)).is_valid()


@pytest.mark.parametrize("byte", range(len(THREE_RECORDS)))
def test_any_flipped_bit_is_detected_except_in_fields_set_by_the_broker(byte: int) -> None:
    assigned = byte < 8 or 12 <= byte < 16
    for bit in range(8):
        data = bytearray(THREE_RECORDS)
        data[byte] ^= 1 << bit

        try:
            valid = [batch.is_valid() for batch in batches(data)]
        except CorruptMessage:
            valid = []
        assert assigned is (valid == [True])


def test_incomplete_batch_at_the_end_is_left_out() -> None:
    for kept in range(len(THREE_RECORDS)):
        found = list(batches(ABORT + THREE_RECORDS + THREE_RECORDS[:kept]))

        assert [(0, 78), (78, 97)] == [(batch.position, batch.size) for batch in found]


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13])
@pytest.mark.parametrize("kept", [12, 17, 61])
def test_impossible_batch_length_is_corrupt(length: int, kept: int) -> None:
    data = THREE_RECORDS[:8] + length.to_bytes(4, "big", signed=True) + THREE_RECORDS[12:kept]

    with pytest.raises(CorruptMessage, match=f"Record size {length} is less"):
        list(batches(data))


@pytest.mark.parametrize("length", [14, 48])
def test_batch_smaller_than_its_header_is_corrupt(length: int) -> None:
    """
    A version 0 message may be that small, a version 2 batch may not.
    """
    data = THREE_RECORDS[:8] + length.to_bytes(4, "big") + THREE_RECORDS[12:]

    with pytest.raises(CorruptMessage, match=f"the size {length + 12} is smaller"):
        list(batches(data))


@pytest.mark.parametrize("magic", [3, 127, -1])
def test_unknown_magic_byte_is_corrupt(magic: int) -> None:
    data = THREE_RECORDS[:16] + magic.to_bytes(1, "big", signed=True)

    assert [] == list(batches(data[:16]))
    with pytest.raises(CorruptMessage, match=f"Invalid magic found in record: {magic}$"):
        list(batches(data))


def test_attribute_bits_are_distinguished() -> None:
    plain = build_batch(THREE)

    def with_attributes(bits: int) -> RecordBatch:
        data = bytearray(plain)
        data[22] = bits
        return read_batch(memoryview(data))

    assert [0, 1, 2, 3, 4, 5, 6, 7] == [with_attributes(bits).codec for bits in range(8)]
    assert TimestampType.LOG_APPEND_TIME is with_attributes(0x08).timestamp_type
    assert with_attributes(0x10).is_transactional
    assert with_attributes(0x20).is_control
    assert 1700000000000 == with_attributes(0x40).delete_horizon_ms


def test_compacted_batch_keeps_its_offset_range() -> None:
    kept = [Record(12, 5000, b"a", None), Record(15, 4000, b"b", b"c")]

    data = build_batch_with_offsets(
        kept,
        base_offset=10,
        last_offset=19,
        delete_horizon_ms=9000,
        partition_leader_epoch=4,
        producer_id=7,
        producer_epoch=1,
        base_sequence=MAX,
    )

    batch = next(batches(data))
    assert (10, 19, 2) == (batch.base_offset, batch.last_offset, batch.record_count)
    assert (9000, 5000) == (batch.delete_horizon_ms, batch.max_timestamp)
    assert (4, 8) == (batch.partition_leader_epoch, batch.last_sequence)
    assert batch.has_producer_id
    assert kept == list(batch.records())


@pytest.mark.parametrize(
    ("sequence", "step", "after"),
    [(0, 0, 0), (5, 3, 8), (MAX, 0, MAX), (MAX, 1, 0), (MAX - 2, 5, 2)],
)
def test_sequences_wrap_to_zero(sequence: int, step: int, after: int) -> None:
    assert after == increment_sequence(sequence, step)
    assert sequence == decrement_sequence(after, step)


def test_sequences_of_a_corrupt_batch_overflow_as_in_java() -> None:
    assert 5 - 2**31 == increment_sequence(10, -5)


@given(st.integers(0, MAX), st.integers(0, MAX))
def test_adding_and_subtracting_sequences_are_inverse(sequence: int, step: int) -> None:
    after = increment_sequence(sequence, step)

    assert 0 <= after <= MAX
    assert sequence == decrement_sequence(after, step)


@given(st.binary(max_size=200), st.integers(0, 60))
def test_arbitrary_bytes_are_batches_or_corrupt(data: bytes, cut: int) -> None:
    data = THREE_RECORDS[:cut] + data
    try:
        for batch in batches(data):
            assert batch.size >= record_batch.HEADER_SIZE
            assert batch.end <= len(data)
            batch.is_valid()
    except CorruptMessage:
        pass
