"""
Records of groups of the protocols that came after the classic one.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from struct import Struct
from typing import Any, Final

from barnabas.protocol.codec.codec import decode
from barnabas.protocol.internal_topics import group_records as schemas
from barnabas.protocol.structs import NamedTuple
from barnabas.server.groups.group_type import GroupType

VERSION: Final = Struct(">h")
"""
The start of every key and value: the version, and in a key the type of the record.
"""


class Role(Enum):
    """
    The content of a record, common to all protocols.
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
    schemas.ConsumerGroupMetadataKey: (_CONSUMER, Role.EPOCH),
    schemas.ConsumerGroupPartitionMetadataKey: (_CONSUMER, Role.OTHER),
    schemas.ConsumerGroupMemberMetadataKey: (_CONSUMER, Role.MEMBER),
    schemas.ConsumerGroupTargetAssignmentMetadataKey: (_CONSUMER, Role.TARGET_EPOCH),
    schemas.ConsumerGroupTargetAssignmentMemberKey: (_CONSUMER, Role.TARGET),
    schemas.ConsumerGroupCurrentMemberAssignmentKey: (_CONSUMER, Role.CURRENT),
    schemas.ConsumerGroupRegularExpressionKey: (_CONSUMER, Role.REGEX),
    schemas.ShareGroupMetadataKey: (_SHARE, Role.EPOCH),
    schemas.ShareGroupMemberMetadataKey: (_SHARE, Role.MEMBER),
    schemas.ShareGroupTargetAssignmentMetadataKey: (_SHARE, Role.TARGET_EPOCH),
    schemas.ShareGroupTargetAssignmentMemberKey: (_SHARE, Role.TARGET),
    schemas.ShareGroupCurrentMemberAssignmentKey: (_SHARE, Role.CURRENT),
    schemas.ShareGroupStatePartitionMetadataKey: (_SHARE, Role.OTHER),
    schemas.StreamsGroupMetadataKey: (_STREAMS, Role.EPOCH),
    schemas.StreamsGroupMemberMetadataKey: (_STREAMS, Role.MEMBER),
    schemas.StreamsGroupTargetAssignmentMetadataKey: (_STREAMS, Role.TARGET_EPOCH),
    schemas.StreamsGroupTargetAssignmentMemberKey: (_STREAMS, Role.TARGET),
    schemas.StreamsGroupCurrentMemberAssignmentKey: (_STREAMS, Role.CURRENT),
    schemas.StreamsGroupTopologyKey: (_STREAMS, Role.TOPOLOGY),
}
_TYPES: Final = {key.api.key: meaning for key, meaning in _KEYS.items()}


class ModernRecord(NamedTuple):
    """
    A record as bytes, with the ids of its group and member.
    """

    type: int
    group_id: str
    member_id: str  # "" where it is not about a member
    key: bytes
    value: bytes | None

    @property
    def group_type(self) -> GroupType:
        return _TYPES[self.type][0]

    @property
    def role(self) -> Role:
        return _TYPES[self.type][1]

    def read(self) -> Any:
        """
        The value.

        Raises:
            DecodeError: the value does not fit the type.
        """
        assert self.value is not None, self
        (version,) = VERSION.unpack_from(self.value)
        _, schema = schemas.RECORDS[self.type]
        return decode(schema, version, self.value[VERSION.size :])

    def tombstone(self) -> ModernRecord:
        """
        The record that deletes this one.
        """
        return self._replace(value=None)


def modern_record(record_type: int, key: bytes, value: bytes | None) -> ModernRecord | None:
    """
    The record with that key and value; None if no group of these protocols has that type.

    Raises:
        DecodeError: the key does not fit the type.
    """
    if record_type not in _TYPES:
        return None
    schema: Any = schemas.RECORDS[record_type][0]
    whose = decode(schema, 0, key[VERSION.size :])
    return ModernRecord(record_type, whose.group_id, getattr(whose, "member_id", ""), key, value)
