"""
Groups of the protocols that came after the classic one: KIP-848 consumers, share groups, streams.

This broker does not speak these protocols, but a log that Apache Kafka has written may have their
groups. They are kept as their records: listed, deleted when they have no members, and closed to
members of the classic protocol before that. Their committed offsets are offsets like any other.

Members of these groups cannot send heartbeats here. One session timeout after the log was loaded
all of them are removed, with the records that Kafka would write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from barnabas.protocol.codec.schema import replace
from barnabas.protocol.errors import (
    GroupIdNotFound,
    NonEmptyGroup,
    StaleMemberEpoch,
    UnknownMemberId,
    UnsupportedVersion,
)
from barnabas.server.groups.group_type import GroupType
from barnabas.server.groups.modern.records import ModernRecord, Role, encode_key

OFFSETS_OF_MEMBERS_SINCE: Final = 9
"""
The first version of OffsetCommit that members of these protocols may use.
"""

STABLE: Final = 0
"""
The state of a member that has its target assignment.
"""

_ORDER_OF_DELETION: Final[Mapping[GroupType, tuple[Role, ...]]] = {
    GroupType.CONSUMER: (
        Role.CURRENT,
        Role.TARGET,
        Role.TARGET_EPOCH,
        Role.MEMBER,
        Role.REGEX,
        Role.OTHER,
        Role.EPOCH,
    ),
    GroupType.SHARE: (
        Role.CURRENT,
        Role.TARGET,
        Role.TARGET_EPOCH,
        Role.MEMBER,
        Role.OTHER,
        Role.EPOCH,
    ),
    GroupType.STREAMS: (
        Role.CURRENT,
        Role.TARGET,
        Role.TARGET_EPOCH,
        Role.MEMBER,
        Role.EPOCH,
        Role.TOPOLOGY,
    ),
}


class ModernGroup:
    """
    A group of another protocol than the classic one, as its records.

    Invariants:

    1. ``_records`` has the last record of every key that is not deleted.
    2. The group is changed by its records only.
    """

    __slots__ = ("_records", "group_id", "is_deleted", "type")

    def __init__(self, group_id: str, group_type: GroupType) -> None:
        self.group_id = group_id
        self.type = group_type
        self.is_deleted = False
        self._records: dict[bytes, ModernRecord] = {}

    def apply(self, record: ModernRecord) -> None:
        """
        Apply a record, or a tombstone.
        """
        key = encode_key(record.key)
        if record.value is not None:
            self._records[key] = record
        else:
            self._records.pop(key, None)
            self.is_deleted |= record.role is Role.EPOCH

    # State

    @property
    def members(self) -> list[str]:
        """
        The ids of the members.
        """
        roles = {Role.MEMBER, Role.CURRENT}
        records = self._records.values()
        return list(dict.fromkeys(r.member_id for r in records if r.role in roles))

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def can_become_classic(self) -> bool:
        """
        Whether a member of the classic protocol may join, and make this a classic group.
        """
        return self.is_empty and self.type is not GroupType.SHARE

    @property
    def listed_protocol_type(self) -> str:
        return self.type.value

    @property
    def state_name(self) -> str:
        """
        The state, as ``maybeUpdateGroupState`` of Kafka's three group classes computes it.
        """
        if self.is_empty:
            return "Empty"
        if self.type is GroupType.SHARE:
            return "Stable"
        if self.type is GroupType.STREAMS and not self._is_topology_valid():
            return "NotReady"
        epoch = max((value.epoch for value in self._values(Role.EPOCH)), default=0)
        target = max(
            (value.assignment_epoch for value in self._values(Role.TARGET_EPOCH)), default=0
        )
        if epoch > target:
            return "Assigning"
        current = list(self._values(Role.CURRENT))
        if len(current) == len(self.members) and all(
            member.member_epoch == target and member.state == STABLE for member in current
        ):
            return "Stable"
        return "Reconciling"

    def is_subscribed_to(self, topic: str) -> bool:
        """
        Whether a member subscribes to the topic.
        """
        if self.type is GroupType.STREAMS:
            return not self.is_empty and any(
                topic in subtopology.source_topics
                for topology in self._values(Role.TOPOLOGY)
                for subtopology in topology.subtopologies
            )
        return any(
            topic in member.subscribed_topic_names for member in self._values(Role.MEMBER)
        ) or any(topic in regex.topics for regex in self._values(Role.REGEX))

    # Validation of requests

    def validate_commit(
        self,
        member_id: str,
        instance_id: str | None,
        epoch: int,
        *,
        version: int,
        is_transactional: bool = False,
    ) -> None:
        """
        See whether the sender may commit offsets.

        Raises:
            GroupIdNotFound: this is a share group, which has no offsets.
            UnknownMemberId: the group has members, and the sender is not one of them.
            UnsupportedVersion: a member sends a version that is older than its protocol.
            StaleMemberEpoch: the member's epoch is another one.
        """
        if self.type is GroupType.SHARE:
            raise GroupIdNotFound(f"Group {self.group_id} is not a consumer group.")
        if epoch < 0 and (
            self.is_empty or (is_transactional and _is_nobody(member_id, instance_id))
        ):
            return
        if member_id not in self.members:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
        if version < OFFSETS_OF_MEMBERS_SINCE and not is_transactional:
            raise UnsupportedVersion(
                "OffsetCommit version 9 or above must be used by members using the"
                f" {self.type.value} group protocol"
            )
        self._validate_epoch(member_id, epoch)

    def validate_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """
        See whether the sender may read committed offsets.

        Raises:
            GroupIdNotFound: this is a share group, which has no offsets.
            UnknownMemberId: the sender names a member that the group does not have.
            StaleMemberEpoch: the member's epoch is another one.
        """
        if self.type is GroupType.SHARE:
            raise GroupIdNotFound(f"Group {self.group_id} is not a consumer group.")
        if member_id is None and member_epoch < 0:
            return
        if member_id is None or member_id not in self.members:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
        self._validate_epoch(member_id, member_epoch)

    def validate_offset_delete(self) -> None:
        """
        See whether single offsets may be deleted.

        Raises:
            GroupIdNotFound: this is a share group, which has no offsets.
        """
        if self.type is GroupType.SHARE:
            raise GroupIdNotFound(f"Group {self.group_id} is not a consumer group.")

    def validate_delete(self) -> None:
        """
        See whether the group may be deleted.

        Raises:
            NonEmptyGroup: it has members.
        """
        if not self.is_empty:
            raise NonEmptyGroup

    # Records

    def tombstones(self) -> list[ModernRecord]:
        """
        The records that delete the group, in Kafka's order.
        """
        return [
            record.tombstone()
            for role in _ORDER_OF_DELETION[self.type]
            for record in self._records.values()
            if record.role is role
        ]

    def without_members(self) -> list[ModernRecord]:
        """
        The records that remove all members and begin a new epoch.
        """
        records = []
        for member_id in self.members:
            for role in (Role.CURRENT, Role.TARGET, Role.MEMBER):
                records += [
                    record.tombstone()
                    for record in self._records.values()
                    if record.role is role and record.member_id == member_id
                ]
        records += [r.tombstone() for r in self._records.values() if r.role is Role.REGEX]
        records += [_next_epoch(r) for r in self._records.values() if r.role is Role.EPOCH]
        return records

    def _values(self, role: Role) -> Iterator[Any]:
        return (record.value for record in self._records.values() if record.role is role)

    def _validate_epoch(self, member_id: str, epoch: int) -> None:
        for record in self._records.values():
            if record.role is Role.CURRENT and record.member_id == member_id:
                current = record.value.member_epoch
                if current != epoch:
                    raise StaleMemberEpoch(
                        f"The received member epoch {epoch} does not match the expected member"
                        f" epoch {current}."
                    )

    def _is_topology_valid(self) -> bool:
        validated = [value.validated_topology_epoch for value in self._values(Role.EPOCH)]
        return validated == [topology.epoch for topology in self._values(Role.TOPOLOGY)]

    def __repr__(self) -> str:
        return f"<ModernGroup {self.group_id} {self.type.value} members {self.members}>"


def _next_epoch(record: ModernRecord) -> ModernRecord:
    """
    The record of the next epoch, without subscriptions: the hash of no topics is 0.
    """
    value = replace(record.value, epoch=record.value.epoch + 1, metadata_hash=0)
    return record._replace(value=value)


def _is_nobody(member_id: str, instance_id: str | None) -> bool:
    """
    Whether a commit in a transaction names no member.
    """
    return not member_id and instance_id is None
