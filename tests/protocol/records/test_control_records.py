from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import InvalidRecord
from barnabas.protocol.records.batch import read_batch
from barnabas.protocol.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    control_key,
)
from barnabas.protocol.records.record import Record
from tests.support.golden_logs import golden_batches

ABORT_BATCH = bytes.fromhex(
    "0000000000000000 00000042 ffffffff 02 cea9b64c 0030 00000000 0000018bcfe56800 0000018bcfe56800"
    "0000000000000fa0 0003 ffffffff 00000001 20 00 00 00 08 00000000 0c 000000000009 00"
)
VALUES: dict[ControlRecordType, type[Message]] = {
    ControlRecordType.LEADER_CHANGE: LeaderChangeMessage,
    ControlRecordType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlRecordType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlRecordType.KRAFT_VERSION: KRaftVersionRecord,
    ControlRecordType.KRAFT_VOTERS: VotersRecord,
}


@pytest.mark.scenario(5)
def test_transaction_marker_has_kafkas_bytes() -> None:
    marker = EndTransactionMarker(ControlRecordType.ABORT, coordinator_epoch=9)

    batch = marker.batch(1700000000000, producer_id=4000, producer_epoch=3)

    assert ABORT_BATCH == batch
    (record,) = read_batch(memoryview(batch)).records()
    assert marker == EndTransactionMarker.deserialize(record)


@pytest.mark.parametrize("control_type", [t for t in ControlRecordType if t >= 0])
def test_control_record_type_is_read_from_its_key(control_type: ControlRecordType) -> None:
    """
    Also from a later version with more fields.
    """
    key = control_key(control_type)

    assert control_type is ControlRecordType.of(key)
    assert control_type is ControlRecordType.of(b"\x00\x05" + key[2:] + b"more")


@pytest.mark.parametrize("number", [7, 100, -1, -32768])
def test_unknown_control_record_type_is_reported_as_unknown(number: int) -> None:
    """
    The reader is expected to skip it.
    """
    assert ControlRecordType.UNKNOWN is ControlRecordType.of(
        b"\0\0" + number.to_bytes(2, "big", signed=True)
    )


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\xff\xff\0\0"])
def test_malformed_control_record_key_is_refused(key: bytes | None) -> None:
    with pytest.raises(InvalidRecord):
        ControlRecordType.of(key)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\0\0\0\2", b"\0\0\0\0\0\1"),
        (b"\0\0\0\0", None),
        (b"\0\0\0\0", b"\0\0\0\0\0"),
        (b"\0\0\0\1", b"\xff\xff\0\0\0\1"),
    ],
)
def test_malformed_transaction_marker_is_refused(key: bytes, value: bytes | None) -> None:
    with pytest.raises(InvalidRecord):
        EndTransactionMarker.deserialize(Record(0, 0, key, value))


def test_transaction_marker_of_a_later_version_is_accepted() -> None:
    record = Record(0, 0, b"\0\0\0\1", b"\0\7\0\0\0\3more")

    assert EndTransactionMarker(ControlRecordType.COMMIT, 3) == EndTransactionMarker.deserialize(
        record
    )


def test_voters_record_has_directories_endpoints_and_versions() -> None:
    record = VotersRecord(
        version=0,
        voters=[
            VotersRecord.Voter(
                voter_id=3,
                voter_directory_id=UUID(int=0xFFFE),
                endpoints=[VotersRecord.Endpoint(name="C", host="h", port=65535)],
                kraft_version_feature=VotersRecord.KRaftVersionFeature(
                    min_supported_version=0, max_supported_version=1
                ),
            )
        ],
    )

    data = encode(record, 0)

    expected = (
        "0000 02 00000003 0000000000000000000000000000fffe"
        "02 0243 0268 ffff 00  0000 0001 00  00  00"
    )
    assert bytes.fromhex(expected) == data
    assert record == decode(VotersRecord, 0, data)


def test_control_records_of_kafka_survive_a_round_trip(golden: Path) -> None:
    seen = set()
    for pattern in ("*/data/*/*.log", "*/data/*/*.checkpoint", "*/data/bootstrap.checkpoint"):
        for batch in golden_batches(golden, pattern):
            for record in batch.records() if batch.is_control else ():
                control_type = ControlRecordType.of(record.key)
                assert control_key(control_type) == record.key
                assert record.value is not None
                if control_type <= ControlRecordType.COMMIT:
                    assert EndTransactionMarker.deserialize(record).value() == record.value
                else:
                    cls = VALUES[control_type]
                    assert encode(decode(cls, 0, record.value), 0) == record.value
                seen.add(control_type)

    assert {
        ControlRecordType.ABORT,
        ControlRecordType.COMMIT,
        ControlRecordType.LEADER_CHANGE,
        ControlRecordType.SNAPSHOT_HEADER,
        ControlRecordType.SNAPSHOT_FOOTER,
    } <= seen
