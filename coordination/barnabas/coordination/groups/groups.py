"""
The groups of one partition of ``__consumer_offsets``, of all types.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias, TypeVar

from barnabas.coordination.coordinator_runtime.memory import MemoryBudget
from barnabas.coordination.groups.classic.group import ClassicGroup
from barnabas.coordination.groups.consumer.group import ConsumerGroup
from barnabas.coordination.groups.group_type import GroupType
from barnabas.coordination.groups.modern.records import ModernRecord
from barnabas.coordination.groups.persistence import restored_group
from barnabas.coordination.groups.records import GroupRecord
from barnabas.coordination.groups.share.group import ShareGroup
from barnabas.coordination.groups.streams.group import StreamsGroup
from barnabas.coordination.text_memory import text_bytes
from barnabas.protocol.errors import GroupIdNotFound

GROUP_BYTES: Final = 1000
"""
The memory of a group without members, offsets and id.
"""

Group: TypeAlias = ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup

G = TypeVar("G", bound=Group)


class Groups:
    """
    Groups by their id.

    The ``apply`` methods depend on the records and their order only: loading a partition runs them
    for each record.
    """

    def __init__(self, memory: MemoryBudget) -> None:
        self._groups: dict[str, Group] = {}
        self._memory = memory
        self._held = memory.hold(0)

    def __iter__(self) -> Iterator[Group]:
        return iter(tuple(self._groups.values()))

    def __len__(self) -> int:
        return len(self._groups)

    def get(self, group_id: str) -> Group | None:
        return self._groups.get(group_id)

    def get_classic(self, group_id: str) -> ClassicGroup | None:
        """
        The group, or None if it does not exist or is of another type.
        """
        group = self._groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def check_room(self, group_id: str) -> None:
        """
        See whether there is memory for the group, which may exist already.

        Raises:
            CoordinatorNotAvailable: there is none.
        """
        if group_id not in self._groups:
            self._memory.check_room(GROUP_BYTES + text_bytes(group_id))

    def expect(self, group_id: str) -> Group:
        """
        The group, of any type.

        Raises:
            GroupIdNotFound: it does not exist.
        """
        group = self._groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        return group

    def find(self, group_id: str, group_class: type[G]) -> G:
        """
        The group, of that class, for those that look at it, or leave it.

        Raises:
            GroupIdNotFound: it does not exist, or is of another type.
        """
        group = self.expect(group_id)
        if not isinstance(group, group_class):
            raise GroupIdNotFound(f"Group {group_id} is not a {group_class.type.value} group.")
        return group

    def find_of_member(self, group_id: str, group_class: type[G]) -> G:
        """
        The group, of that class, for its members.

        Raises:
            GroupIdNotFound: it does not exist, or is of another type.
        """
        group = self._groups.get(group_id)
        if isinstance(group, group_class):
            return group
        if group is None:
            kind = group_class.type.value.capitalize()
            raise GroupIdNotFound(f"{kind} group {group_id} not found.")
        return self.find(group_id, group_class)

    def create_classic(self, group_id: str, now_ms: int) -> ClassicGroup:
        """
        Create an empty group, in place of the one that had the id.
        """
        group = ClassicGroup(group_id, state_timestamp_ms=now_ms)
        self.put(group_id, group)
        return group

    def put(self, group_id: str, group: Group | None) -> None:
        """
        Set or remove the group of an id.
        """
        if group is None:
            if self._groups.pop(group_id, None) is not None:
                self._held.grow(-GROUP_BYTES - text_bytes(group_id))
            return
        if group_id not in self._groups:
            self._held.grow(GROUP_BYTES + text_bytes(group_id))
        self._groups[group_id] = group

    def apply_classic(self, record: GroupRecord) -> None:
        """
        Apply the record of a classic group.
        """
        value = record.value
        self.put(record.group_id, None if value is None else restored_group(record.group_id, value))

    def apply_modern(self, record: ModernRecord) -> None:
        """
        Apply a record of a group of another protocol.

        Raises:
            ValueError: the group exists and is of another type; no coordinator writes that.
        """
        group = self._groups.get(record.group_id)
        if isinstance(group, ClassicGroup) and group.is_simple:
            # It was created for offsets that compaction has moved before this record.
            group = None
        is_ours = group is not None and group.type is record.group_type
        if record.value is None and not is_ours:
            return
        if group is None:
            group = _new_group(record)
        if isinstance(group, ClassicGroup) or group.type is not record.group_type:
            raise ValueError(f"{record} for {group}")
        group.apply(record)
        self.put(record.group_id, None if group.is_deleted else group)

    def hold_offsets(self, group_id: str, now_ms: int) -> None:
        """
        Create the group that committed offsets belong to, unless it exists.
        """
        if group_id not in self._groups:
            self.create_classic(group_id, now_ms)


def _new_group(record: ModernRecord) -> ConsumerGroup | ShareGroup | StreamsGroup:
    if record.group_type is GroupType.CONSUMER:
        return ConsumerGroup(record.group_id)
    if record.group_type is GroupType.SHARE:
        return ShareGroup(record.group_id)
    return StreamsGroup(record.group_id)
