"""
Records of ``__consumer_offsets``.

::

    key   = int16 type of the record | key of that type
    value = int16 version | value in that version, or null: the key is deleted

===========  ==========================================================  =======================
type         what                                                        key
===========  ==========================================================  =======================
0, 1         a committed offset; a group without records of its own      group, topic, partition
             exists as long as it has any
2            a classic group and its members, as of its last generation  group
3 to 23      groups of other protocols (``modern/records.py``)           group, mostly a member
===========  ==========================================================  =======================

As Apache Kafka 4.3.1, this coordinator writes offsets as type 1 in version 4, or version 1 if they
have an expiry of their own, and classic groups in version 3. It reads every version.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import Final, TypeAlias, TypeVar

from barnabas.coordination.coordinator_runtime.loading import LaterRecord
from barnabas.coordination.coordinator_runtime.result import CoordinatorResult, EncodedRecord
from barnabas.coordination.groups.modern.records import VERSION, ModernRecord, modern_record
from barnabas.protocol.codec.codec import decode_from, encode
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.internal_topics.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.protocol.structs import NamedTuple

M = TypeVar("M", bound=Message)

OFFSET_COMMIT_VERSION: Final = 4
OFFSET_COMMIT_WITH_EXPIRY_VERSION: Final = 1
GROUP_METADATA_VERSION: Final = 3
NO_EXPIRY: Final = -1
LEGACY_OFFSET_COMMIT: Final = 0


class OffsetRecord(NamedTuple):
    """
    A committed offset, or its tombstone.
    """

    group_id: str
    topic: str
    partition: int
    value: OffsetCommitValue | None


class GroupRecord(NamedTuple):
    """
    A classic group, or its tombstone.
    """

    group_id: str
    value: GroupMetadataValue | None


CoordinatorRecord: TypeAlias = OffsetRecord | GroupRecord | ModernRecord

GroupResult: TypeAlias = CoordinatorResult[CoordinatorRecord]


def encode_record(record: CoordinatorRecord) -> EncodedRecord:
    """
    The key and the value of a record.
    """
    match record:
        case OffsetRecord(group_id, topic, partition, value):
            key = _encode_key(OffsetCommitKey(group=group_id, topic=topic, partition=partition))
            if value is None:
                return key, None
            has_expiry = value.expire_timestamp != NO_EXPIRY
            version = OFFSET_COMMIT_WITH_EXPIRY_VERSION if has_expiry else OFFSET_COMMIT_VERSION
            return key, _encode_value(value, version)
        case GroupRecord(group_id, group):
            key = _encode_key(GroupMetadataKey(group=group_id))
            return key, None if group is None else _encode_value(group, GROUP_METADATA_VERSION)
        case ModernRecord():
            return record.encode()


def decode_record(key: bytes | None, value: bytes | None) -> CoordinatorRecord | None:
    """
    The record with that key and value; None if its type is unknown: a later release may have
    written it.

    Raises:
        DecodeError: the bytes do not fit the type and the version.
    """
    record_type = _version_of(key)
    assert key is not None
    if record_type in {LEGACY_OFFSET_COMMIT, OffsetCommitKey.api.key}:
        whose = decode_from(OffsetCommitKey, 0, key, VERSION.size)[0]
        offset = _decode_value(OffsetCommitValue, value)
        return OffsetRecord(whose.group, whose.topic, whose.partition, offset)
    if record_type == GroupMetadataKey.api.key:
        group_id = decode_from(GroupMetadataKey, 0, key, VERSION.size)[0].group
        return GroupRecord(group_id, _decode_value(GroupMetadataValue, value))
    return modern_record(record_type, key, value)


def _encode_key(key: Message) -> bytes:
    return VERSION.pack(key.api.key) + encode(key, 0)


def _encode_value(value: Message, version: int) -> bytes:
    return VERSION.pack(version) + encode(value, version)


def _decode_value(cls: type[M], data: bytes | None) -> M | None:
    if data is None:
        return None
    version = _version_of(data)
    if version not in cls.api.versions:
        if version > 0:
            raise LaterRecord(cls.__name__, version)
        raise DecodeError(f"{cls.__name__} v{version} is not known")
    return decode_from(cls, version, data, VERSION.size)[0]


def _version_of(data: bytes | None) -> int:
    if data is None or len(data) < VERSION.size:
        raise DecodeError("a record without a type or a version")
    version: int = VERSION.unpack_from(data)[0]
    return version
