"""
Control records: what brokers say to each other and to consumers within a log.

::

    key    int16 version = 0 | int16 type
    value  of ABORT and COMMIT:  int16 version = 0 | int32 epoch of the coordinator
           of the others:        a message that repeats its version as its first field

ABORT and COMMIT end a transaction, in a batch that is transactional and has the producer's id. The
others only occur in ``__cluster_metadata`` and are about that log itself. Types that are not known
are passed over, and later versions are read as the latest known one (Kafka's ControlRecordType and
EndTransactionMarker).
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import ClassVar, Final, Self, Unpack
from uuid import UUID

from barnabas.protocol.codec.schema import (
    ZERO_UUID,
    Api,
    int16,
    int32,
    int64,
    message,
    since,
    uint16,
)
from barnabas.protocol.errors import BufferUnderflow, InvalidRecord, NullValue
from barnabas.protocol.records.batch import BatchOptions, control_batch
from barnabas.protocol.records.record import Record
from barnabas.protocol.structs import NamedTuple

_KEY: Final = Struct(">hh")
_MARKER: Final = Struct(">hi")


class ControlRecordType(IntEnum):
    """
    The type in the key of a control record.
    """

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6

    @classmethod
    def of(cls, key: bytes | None) -> ControlRecordType:
        """
        Raises:
            InvalidRecord: *key* is not that of a control record.
        """
        number = control_type_number(key)
        return cls(number) if 0 <= number <= cls.KRAFT_VOTERS else cls.UNKNOWN


def control_type_number(key: bytes | None) -> int:
    """
    The number of the type in the key of a control record, known or not.

    Raises:
        InvalidRecord: *key* is not that of a control record (Kafka's
        ControlRecordType.parseTypeId).
    """
    if key is None:
        raise NullValue("A control record has no key.")
    if len(key) < _KEY.size:
        raise InvalidRecord(
            "Invalid value size found for control record key. Must have at least "
            f"{_KEY.size} bytes, but found only {len(key)}"
        )
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise InvalidRecord(
            f"Invalid version found for control record: {version}. May indicate data corruption"
        )
    return int(number)


def control_key(control_type: ControlRecordType) -> bytes:
    """
    The key of a control record.
    """
    return _KEY.pack(0, control_type)


class EndTransactionMarker(NamedTuple):
    """
    The end of a transaction, and the epoch of the coordinator that wrote it.
    """

    control_type: ControlRecordType
    coordinator_epoch: int

    @classmethod
    def deserialize(cls, record: Record) -> Self:
        """
        Raises:
            InvalidRecord: *record* is no marker.
        """
        control_type = ControlRecordType.of(record.key)
        if control_type not in {ControlRecordType.ABORT, ControlRecordType.COMMIT}:
            raise InvalidRecord(f"{control_type.name} does not end a transaction.")
        return cls(control_type, coordinator_epoch(record.value))

    def value(self) -> bytes:
        return _MARKER.pack(0, self.coordinator_epoch)

    def batch(
        self, timestamp: int, *, base_offset: int = 0, **options: Unpack[BatchOptions]
    ) -> bytearray:
        """
        The batch that ends the transaction; *options* name the producer.
        """
        options["is_transactional"] = True
        return control_batch(
            self.control_type, self.value(), timestamp, base_offset=base_offset, **options
        )


def coordinator_epoch(value: bytes | None) -> int:
    """
    The epoch of the coordinator in the value of a marker.

    Raises:
        InvalidRecord: *value* is not that of a marker (Kafka's EndTransactionMarker).
    """
    if value is None:
        raise NullValue("A marker has no value.")
    if len(value) < _MARKER.size:
        raise BufferUnderflow(f"The value of a marker is too short: {value!r}.")
    version, epoch = _MARKER.unpack_from(value)
    if version < 0:
        raise InvalidRecord(
            f"Invalid version found for end transaction marker: {version}. "
            "May indicate data corruption"
        )
    return int(epoch)


@message
class LeaderChangeMessage:
    """
    A node has become leader. v1 names the directories of the voters (KIP-853).
    """

    api: ClassVar[Api] = Api(ControlRecordType.LEADER_CHANGE, versions=range(2), flexible=0)

    @message
    class Voter:
        voter_id: int32
        voter_directory_id: UUID = since(1, default=ZERO_UUID)

    version: int16
    leader_id: int32
    voters: list[Voter]
    granting_voters: list[Voter]


@message
class SnapshotHeaderRecord:
    """
    A snapshot begins; when the last record of the log that it contains was appended, in ms.
    """

    api: ClassVar[Api] = Api(ControlRecordType.SNAPSHOT_HEADER, versions=range(1), flexible=0)

    version: int16
    last_contained_log_timestamp: int64


@message
class SnapshotFooterRecord:
    """
    A snapshot is complete.
    """

    api: ClassVar[Api] = Api(ControlRecordType.SNAPSHOT_FOOTER, versions=range(1), flexible=0)

    version: int16


@message
class KRaftVersionRecord:
    """
    Which protocol the voters speak from here on.
    """

    api: ClassVar[Api] = Api(ControlRecordType.KRAFT_VERSION, versions=range(1), flexible=0)

    version: int16
    kraft_version: int16


@message
class VotersRecord:
    """
    Who the voters are from here on.
    """

    api: ClassVar[Api] = Api(ControlRecordType.KRAFT_VOTERS, versions=range(1), flexible=0)

    @message
    class Endpoint:
        name: str
        host: str
        port: uint16

    @message
    class KRaftVersionFeature:
        min_supported_version: int16
        max_supported_version: int16

    @message
    class Voter:
        voter_id: int32
        voter_directory_id: UUID
        endpoints: list[VotersRecord.Endpoint]
        kraft_version_feature: VotersRecord.KRaftVersionFeature

    version: int16
    voters: list[Voter]
