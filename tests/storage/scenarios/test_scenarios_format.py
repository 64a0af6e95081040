from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
)
from barnabas.protocol.records.batch import (
    NO_TIMESTAMP,
    TimestampType,
    build_batch,
)
from barnabas.protocol.records.control import ControlRecordType, EndTransactionMarker
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.errors import RecordValidationError
from barnabas.storage.log.log import Log
from barnabas.storage.producers.append_origin import AppendOrigin
from tests.support.logs import (
    LogHome,
    append,
    read_batches,
    sent_batch,
)
from tests.support.record_bytes import THREE_RECORDS, sealed
from tests.support.segments import FIRST_TIMESTAMP

CONTROL = bytes(build_batch([SimpleRecord(FIRST_TIMESTAMP, b"\0\0\0\0", b"")], is_control=True))


def log_at(offset: int, **config: Any) -> Log:
    """
    An empty log whose next offset is *offset*.
    """
    return LogHome(**config).open(log_start_offset=offset)


def stored(log: Log) -> bytes:
    return bytes(read_batches(log)[-1].data)


@pytest.mark.scenario(2)
def test_append_changes_only_base_offset_and_leader_epoch_of_a_valid_batch() -> None:
    log = log_at(100)

    info = log.append_as_leader(memoryview(bytearray(THREE_RECORDS)), 7)

    expected = bytes.fromhex("0000000000000064 00000055 00000007") + THREE_RECORDS[16:]
    assert expected == stored(log)
    assert (100, 102) == (info.first_offset, info.last_offset)
    assert (FIRST_TIMESTAMP + 5, -1) == (info.max_timestamp, info.log_append_time)


@pytest.mark.scenario(3)
def test_log_append_time_is_written_into_the_header() -> None:
    home = LogHome(message_timestamp_type="LogAppendTime")
    home.clock.advance(1_800_000_000_000 - FIRST_TIMESTAMP)
    log = home.open(log_start_offset=5)
    batch = build_batch([SimpleRecord(FIRST_TIMESTAMP, b"k", b"v")])

    info = log.append_as_leader(memoryview(batch), 7)

    (found,) = read_batches(log)
    assert 0x0008 == found.attributes
    assert 1_800_000_000_000 == found.max_timestamp == info.log_append_time == info.max_timestamp
    assert FIRST_TIMESTAMP == found.base_timestamp
    assert 2770627671 == found.crc == found.computed_crc()
    assert [1_800_000_000_000] == [record.timestamp for record in found.records()]


@pytest.mark.scenario(7)
def test_marker_stays_uncompressed() -> None:
    log = log_at(0, compression_type="gzip")
    marker = EndTransactionMarker(ControlRecordType.COMMIT, 0)
    batch = marker.batch(FIRST_TIMESTAMP, producer_id=1, producer_epoch=0)

    log.append_as_leader(
        memoryview(batch), 0, origin=AppendOrigin.COORDINATOR, transaction_version=0
    )

    assert 78 == len(stored(log))
    assert CompressionType.NONE is read_batches(log)[0].compression


@pytest.mark.scenario(8)
@pytest.mark.parametrize("position", [*range(17, 75, 7), 149])
def test_flipped_byte_is_detected(position: int) -> None:
    log = log_at(0)
    batch = sent_batch()
    batch[position] ^= 0x40

    with pytest.raises(CorruptMessage, match=r"Record is corrupt \(stored crc = \d+\) in .* t-0"):
        log.append_as_leader(batch, 0)

    assert 0 == log.log_end_offset


@pytest.mark.scenario(9)
def test_batch_may_have_exactly_max_message_bytes() -> None:
    log = log_at(0)

    with pytest.raises(MessageTooLarge, match="1048589 bytes"):
        append(log, size=1048589)
    append(log, size=1048588)

    assert 1 == log.log_end_offset


@pytest.mark.scenario(10)
@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        (THREE_RECORDS * 2, "more than one batch"),
        (
            sealed(THREE_RECORDS[61:], 3, last_offset_delta=5, timestamp=FIRST_TIMESTAMP),
            r"Inconsistent batch offset range \[0, 5\] and count of records 3",
        ),
        (CONTROL, "Clients are not allowed to write control records"),
        (
            build_batch([SimpleRecord(FIRST_TIMESTAMP, b"k", b"v")], producer_id=9),
            "Invalid sequence number -1 in record batch with producerId 9",
        ),
    ],
)
def test_batch_not_allowed_from_clients_is_refused(batch: bytes, reason: str) -> None:
    log = log_at(0)

    with pytest.raises(InvalidRecord, match=reason):
        log.append_as_leader(memoryview(bytearray(batch)), 0)

    assert 0 == log.log_end_offset


@pytest.mark.scenario(10)
def test_compacted_topic_reports_records_without_a_key() -> None:
    log = log_at(0, cleanup_policy=("compact",))
    keys = [b"a", None, b"b", None, None, None]
    batch = build_batch([SimpleRecord(FIRST_TIMESTAMP, key, b"v") for key in keys])

    with pytest.raises(RecordValidationError) as caught:
        log.append_as_leader(memoryview(batch), 0)

    assert InvalidRecord.code is caught.value.code
    assert [1, 3, 4, 5] == [error.batch_index for error in caught.value.record_errors]
    assert "due to 4 record errors in total" in str(caught.value)
    assert 3 == str(caught.value).count("Compacted topic cannot accept message without key")


@pytest.mark.scenario(11)
def test_timestamp_may_be_exactly_message_timestamp_after_max_ms_ahead() -> None:
    log = log_at(0)

    append(log, timestamp=FIRST_TIMESTAMP + 3_600_000)
    with pytest.raises(InvalidTimestamp) as caught:
        append(log, timestamp=FIRST_TIMESTAMP + 3_600_001)

    assert isinstance(caught.value, RecordValidationError)
    ((index, message),) = caught.value.record_errors
    assert 0 == index
    assert f"Timestamp {FIRST_TIMESTAMP + 3_600_001} of message with offset 0 is out of" in message
    assert f"{FIRST_TIMESTAMP + 3_600_000}]" in message
    assert 1 == log.log_end_offset


@pytest.mark.scenario(12)
def test_missing_timestamp_is_never_too_old() -> None:
    home = LogHome(message_timestamp_before_max_ms=1000, index_interval_bytes=0)
    log = home.open()

    append(log, 3, timestamp=NO_TIMESTAMP)
    home.stop(log)

    assert 0 == len(home.file(0, ".timeindex"))
    log = home.open()
    assert {NO_TIMESTAMP} == {batch.max_timestamp for batch in read_batches(log)}


@pytest.mark.scenario(14)
@pytest.mark.parametrize("whole", [0, 1])
@pytest.mark.parametrize("length", [1, 11, 12, 16, 17, 60, 149])
def test_incomplete_batch_at_the_end_is_ignored(whole: int, length: int) -> None:
    log = log_at(0)
    data = bytearray(bytes(sent_batch()) * whole + bytes(sent_batch())[:length])

    info = log.append_as_leader(memoryview(data), 0)

    assert 150 * whole == info.valid_bytes == log.size
    assert whole == log.log_end_offset == info.first_offset + 1


def test_log_append_time_claimed_by_a_client_is_corrected() -> None:
    """
    Kafka accepts such a batch if its timestamps are acceptable, and stores the type of the topic.
    """
    log = log_at(0)
    records = [SimpleRecord(FIRST_TIMESTAMP, b"k", b"v")]
    batch = build_batch(records, log_append_time=FIRST_TIMESTAMP + 9)

    log.append_as_leader(memoryview(batch), 0)

    (found,) = read_batches(log)
    assert TimestampType.CREATE_TIME is found.timestamp_type
    assert FIRST_TIMESTAMP + 9 == found.max_timestamp
    assert found.is_valid()
