"""
Records of ``__share_group_state``: how far the members of a share group are (KIP-932).

Key and value begin with an int16: the type of the record, and the version of its value. A key is of
version 0 and never flexible. A snapshot has the whole state of a partition, an update the changes
since then. The delivery state of a batch is 0 Available, 2 Acknowledged or 4 Archived.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final
from uuid import UUID

from barnabas.protocol.codec.schema import Api, Message, int8, int16, int32, int64, message, since


@message
class ShareSnapshotKey:
    api: ClassVar[Api] = Api(0, versions=range(1))

    group_id: str
    topic_id: UUID
    partition: int32


@message
class StateBatch:
    first_offset: int64
    last_offset: int64
    delivery_state: int8
    delivery_count: int16


@message
class ShareSnapshotValue:
    api: ClassVar[Api] = Api(0, versions=range(1), flexible=0)

    snapshot_epoch: int32
    state_epoch: int32
    leader_epoch: int32
    start_offset: int64
    delivery_complete_count: int32 = since(0, default=-1, tag=0)
    create_timestamp: int64
    write_timestamp: int64
    state_batches: list[StateBatch]


@message
class ShareUpdateKey:
    api: ClassVar[Api] = Api(1, versions=range(1))

    group_id: str
    topic_id: UUID
    partition: int32


@message
class ShareUpdateValue:
    api: ClassVar[Api] = Api(1, versions=range(1), flexible=0)

    snapshot_epoch: int32
    leader_epoch: int32
    start_offset: int64
    delivery_complete_count: int32 = since(0, default=-1, tag=0)
    state_batches: list[StateBatch]


RECORDS: Final[Mapping[int, tuple[type[Message], type[Message]]]] = {
    ShareSnapshotKey.api.key: (ShareSnapshotKey, ShareSnapshotValue),
    ShareUpdateKey.api.key: (ShareUpdateKey, ShareUpdateValue),
}
"""
The classes of key and value by the type of the record.
"""
