"""
Records of groups of the protocols that came after the classic one.

A key or value is its message, after its type or its version. All values are of version 0.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from struct import Struct
from typing import Any, Final, Protocol, TypeVar

from barnabas.coordination.coordinator_runtime.loading import LaterRecord
from barnabas.coordination.coordinator_runtime.result import EncodedRecord
from barnabas.coordination.groups.group_type import GroupType
from barnabas.protocol.codec.codec import decode_from, encode
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.internal_topics.group_records import RECORDS, consumer, share, streams
from barnabas.protocol.structs import NamedTuple

VERSION: Final = Struct(">h")
"""
The start of every key and value: the version, and in a key the type of the record.
"""
WRITTEN_VERSION: Final = 0


M = TypeVar("M")
T = TypeVar("T")


class Role(StrEnum):
    """
    The content of a record, common to all protocols. As strings they are found in a dictionary
    without a call of Python's ``Enum.__hash__``, which is written in Python.
    """

    EPOCH = "epoch"  # the group exists; its epoch
    MEMBER = "member"  # a member exists; what it subscribes to
    TARGET_EPOCH = "target epoch"  # the epoch of the target assignment
    TARGET = "target"  # what a member should have
    CURRENT = "current"  # what a member has; its epoch
    REGEX = "regex"  # the topics that a regular expression matches
    TOPOLOGY = "topology"  # the topics that a streams program reads and writes
    OTHER = "other"


_CONSUMER, _SHARE, _STREAMS = GroupType.CONSUMER, GroupType.SHARE, GroupType.STREAMS
_KEYS: Final[Mapping[Any, tuple[GroupType, Role]]] = {
    consumer.ConsumerGroupMetadataKey: (_CONSUMER, Role.EPOCH),
    consumer.ConsumerGroupPartitionMetadataKey: (_CONSUMER, Role.OTHER),
    consumer.ConsumerGroupMemberMetadataKey: (_CONSUMER, Role.MEMBER),
    consumer.ConsumerGroupTargetAssignmentMetadataKey: (_CONSUMER, Role.TARGET_EPOCH),
    consumer.ConsumerGroupTargetAssignmentMemberKey: (_CONSUMER, Role.TARGET),
    consumer.ConsumerGroupCurrentMemberAssignmentKey: (_CONSUMER, Role.CURRENT),
    consumer.ConsumerGroupRegularExpressionKey: (_CONSUMER, Role.REGEX),
    share.ShareGroupMetadataKey: (_SHARE, Role.EPOCH),
    share.ShareGroupMemberMetadataKey: (_SHARE, Role.MEMBER),
    share.ShareGroupTargetAssignmentMetadataKey: (_SHARE, Role.TARGET_EPOCH),
    share.ShareGroupTargetAssignmentMemberKey: (_SHARE, Role.TARGET),
    share.ShareGroupCurrentMemberAssignmentKey: (_SHARE, Role.CURRENT),
    share.ShareGroupStatePartitionMetadataKey: (_SHARE, Role.OTHER),
    streams.StreamsGroupMetadataKey: (_STREAMS, Role.EPOCH),
    streams.StreamsGroupMemberMetadataKey: (_STREAMS, Role.MEMBER),
    streams.StreamsGroupTargetAssignmentMetadataKey: (_STREAMS, Role.TARGET_EPOCH),
    streams.StreamsGroupTargetAssignmentMemberKey: (_STREAMS, Role.TARGET),
    streams.StreamsGroupCurrentMemberAssignmentKey: (_STREAMS, Role.CURRENT),
    streams.StreamsGroupTopologyKey: (_STREAMS, Role.TOPOLOGY),
}
_TYPES: Final = {key.api.key for key in _KEYS}


class ModernRecord(NamedTuple):
    """
    A record of a group of a later protocol; without a value it is a tombstone.
    """

    key: Any
    value: Any

    @property
    def group_id(self) -> str:
        group_id: str = self.key.group_id
        return group_id

    @property
    def member_id(self) -> str:
        """
        The member that the record is about; "" where it is about none.
        """
        member_id: str = getattr(self.key, "member_id", "")
        return member_id

    @property
    def group_type(self) -> GroupType:
        return _KEYS[type(self.key)][0]

    @property
    def role(self) -> Role:
        return _KEYS[type(self.key)][1]

    def encode(self) -> EncodedRecord:
        """
        The key and the value as bytes.
        """
        key = encode_key(self.key)
        if self.value is None:
            return key, None
        return key, VERSION.pack(WRITTEN_VERSION) + encode(self.value, WRITTEN_VERSION)


class GroupRecords(Protocol[M, T]):
    """
    Makes the records of the groups of one protocol, and reads them: the module of this name in the
    package of each. Members are of type *M*, their targets of type *T*.
    """

    def new_member(self, *, member_id: str) -> M:
        """
        A member without records.
        """

    def with_subscription(self, member: M, value: Any, /) -> M:
        """
        The member, with what a record says of it and its subscription.
        """

    def with_assignment(self, member: M, value: Any, /) -> M:
        """
        The member, with the epoch and the assignment of a record.
        """

    def without_assignment(self, member: M, /) -> M:
        """
        The member, after the tombstone of what it has.
        """

    def target_of(self, value: Any, /) -> T:
        """
        The target assignment of a record.
        """

    def target_record(self, group_id: str, member_id: str, target: T, /) -> ModernRecord:
        """
        The record of a member's target assignment.
        """

    def target_epoch_record(self, group_id: str, epoch: int, timestamp_ms: int, /) -> ModernRecord:
        """
        The record that the target assignment is complete.
        """


class RecordTypes(NamedTuple):
    """
    The classes of the records that all of these protocols have, for one of them.
    """

    epoch: Callable[..., Any]
    epoch_key: Callable[..., Any]
    member_key: Callable[..., Any]
    target_epoch: Callable[..., Any]
    target_epoch_key: Callable[..., Any]
    target_key: Callable[..., Any]
    current_key: Callable[..., Any]

    def epoch_record(
        self, group_id: str, epoch: int, metadata_hash: int, **more: Any
    ) -> ModernRecord:
        """
        The record of the group itself.
        """
        value = self.epoch(epoch=epoch, metadata_hash=metadata_hash, **more)
        return ModernRecord(self.epoch_key(group_id=group_id), value)

    def target_epoch_record(self, group_id: str, epoch: int, timestamp_ms: int) -> ModernRecord:
        """
        The record that the target assignment is complete.
        """
        value = self.target_epoch(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
        return ModernRecord(self.target_epoch_key(group_id=group_id), value)

    def member_tombstones(self, group_id: str, member_id: str) -> list[ModernRecord]:
        """
        The records that remove a member, in Kafka's order.
        """
        return [
            ModernRecord(key(group_id=group_id, member_id=member_id), None)
            for key in (self.current_key, self.target_key, self.member_key)
        ]

    def group_tombstones(
        self, group_id: str, member_ids: Sequence[str], others: Iterable[Any]
    ) -> list[ModernRecord]:
        """
        The records that delete a group with its members, in Kafka's order.

        Args:
            others: the last keys, which differ between the protocols.
        """
        current, target, member = (
            [key(group_id=group_id, member_id=each) for each in member_ids]
            for key in (self.current_key, self.target_key, self.member_key)
        )
        target_epoch = self.target_epoch_key(group_id=group_id)
        keys = (*current, *target, target_epoch, *member, *others)
        return [ModernRecord(key, None) for key in keys]


def epochs_of(
    partitions: Sequence[int], epochs: Sequence[int] | None, default: int
) -> dict[int, int]:
    """
    Partitions or tasks of a record, each with the epoch at which the member got it; records before
    Kafka 4.3 have no such epochs.
    """
    if epochs is None or len(epochs) != len(partitions):
        return dict.fromkeys(partitions, default)
    return dict(zip(partitions, epochs, strict=True))


def encode_key(key: Any) -> bytes:
    """
    The bytes of a key.
    """
    return VERSION.pack(key.api.key) + encode(key, WRITTEN_VERSION)


def modern_record(record_type: int, key: bytes, value: bytes | None) -> ModernRecord | None:
    """
    The record with that key and value; None if no group of these protocols has that type.

    Raises:
        DecodeError: key or value do not fit the type, or the version of the value is not known.
    """
    if record_type not in _TYPES:
        return None
    of_key: Any
    of_value: Any
    of_key, of_value = RECORDS[record_type]
    decoded_key = decode_from(of_key, 0, key, VERSION.size)[0]
    if value is None:
        return ModernRecord(decoded_key, None)
    if len(value) < VERSION.size:
        raise DecodeError("a record without a version")
    (version,) = VERSION.unpack_from(value)
    if version not in of_value.api.versions:
        if version > 0:
            raise LaterRecord(of_value.__name__, version)
        raise DecodeError(f"{of_value.__name__} v{version} is not known")
    return ModernRecord(decoded_key, decode_from(of_value, version, value, VERSION.size)[0])
