"""
Records of ``__share_group_state``.

A snapshot has the whole state of a share-partition, an update what has changed since. A tombstone
of the snapshot says that there is no state any more.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, TypeAlias

from barnabas.coordination.coordinator_runtime.loading import LaterRecord
from barnabas.coordination.coordinator_runtime.result import EncodedRecord
from barnabas.coordination.share.keys import SharePartitionKey
from barnabas.protocol.codec.codec import decode_from, encode
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.internal_topics.share_state_records import (
    RECORDS,
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from barnabas.protocol.structs import NamedTuple

VERSION: Final = Struct(">h")
VALUE_VERSION: Final = 0

Value: TypeAlias = ShareSnapshotValue | ShareUpdateValue | None


class ShareRecord(NamedTuple):
    """
    A snapshot, an update, or a tombstone.
    """

    key: SharePartitionKey
    value: Value


def encode_record(record: ShareRecord) -> EncodedRecord:
    """
    The key and the value of a record.
    """
    cls = ShareUpdateKey if isinstance(record.value, ShareUpdateValue) else ShareSnapshotKey
    group_id, topic_id, partition = record.key
    key = cls(group_id=group_id, topic_id=topic_id, partition=partition)
    value = record.value
    return (
        VERSION.pack(cls.api.key) + encode(key, 0),
        None if value is None else VERSION.pack(VALUE_VERSION) + encode(value, VALUE_VERSION),
    )


def decode_record(key: bytes | None, value: bytes | None) -> ShareRecord | None:
    """
    The record with that key and value; None if its type is unknown: a later release may have
    written it.

    Raises:
        LaterRecord: a later release has written the value.
        DecodeError: no coordinator writes this record.
    """
    record_type = _version(key)
    if record_type not in RECORDS:
        return None
    assert key is not None
    key_cls, value_cls = RECORDS[record_type]
    whose = decode_from(key_cls, 0, key, VERSION.size)[0]
    assert isinstance(whose, ShareSnapshotKey | ShareUpdateKey)
    share_partition = SharePartitionKey(whose.group_id, whose.topic_id, whose.partition)
    if value is None:
        if isinstance(whose, ShareUpdateKey):
            raise DecodeError(f"a tombstone of an update of {share_partition}")
        return ShareRecord(share_partition, None)
    if (version := _version(value)) > VALUE_VERSION:
        raise LaterRecord(value_cls.__name__, version)
    found = decode_from(value_cls, version, value, VERSION.size)[0]
    assert isinstance(found, ShareSnapshotValue | ShareUpdateValue)
    return ShareRecord(share_partition, found)


def _version(data: bytes | None) -> int:
    if data is None or len(data) < VERSION.size:
        raise DecodeError("a record without a type or a version")
    version: int = VERSION.unpack_from(data)[0]
    return version
