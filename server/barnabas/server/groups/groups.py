"""
The groups of one partition of ``__consumer_offsets``, of whatever type.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from barnabas.protocol.errors import GroupIdNotFound
from barnabas.server.groups.classic.group import ClassicGroup
from barnabas.server.groups.modern_group import ModernGroup
from barnabas.server.groups.modern_records import ModernRecord
from barnabas.server.groups.persistence import restored_group
from barnabas.server.groups.records import GroupRecord

Group: TypeAlias = ClassicGroup | ModernGroup


class Groups:
    """
    Groups by their id.

    What ``apply`` does must not depend on anything but the records and their order: it is run for
    every record when the partition is loaded.
    """

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}

    def __iter__(self) -> Iterator[Group]:
        return iter(tuple(self._groups.values()))

    def __len__(self) -> int:
        return len(self._groups)

    def get(self, group_id: str) -> Group | None:
        return self._groups.get(group_id)

    def get_classic(self, group_id: str) -> ClassicGroup | None:
        """
        The group, if there is one and it is of the classic type.
        """
        group = self._groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def expect(self, group_id: str) -> Group:
        """
        The group, whatever its type.

        Raises:
            GroupIdNotFound: there is none.
        """
        group = self._groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        return group

    def expect_classic(self, group_id: str) -> ClassicGroup:
        """
        The group, which must be of the classic type.

        Raises:
            GroupIdNotFound: there is none, or it is of another type.
        """
        group = self.expect(group_id)
        if not isinstance(group, ClassicGroup):
            raise GroupIdNotFound(f"Group {group_id} is not a classic group.")
        return group

    def create_classic(self, group_id: str, now_ms: int) -> ClassicGroup:
        """
        A new empty group, instead of whatever had that id.
        """
        group = self._groups[group_id] = ClassicGroup(group_id, state_timestamp_ms=now_ms)
        return group

    def put(self, group_id: str, group: Group | None) -> None:
        """
        Let an id stand for that group, or for none.
        """
        if group is None:
            self._groups.pop(group_id, None)
        else:
            self._groups[group_id] = group

    def apply_classic(self, record: GroupRecord) -> None:
        """
        A classic group is, from now on, what its record says.
        """
        value = record.value
        self.put(record.group_id, None if value is None else restored_group(record.group_id, value))

    def apply_modern(self, record: ModernRecord) -> None:
        """
        A record of a group of another protocol was written or deleted.

        Raises:
            ValueError: the group exists and is of another type, which no writer does.
        """
        group = self._groups.get(record.group_id)
        if isinstance(group, ClassicGroup) and group.is_simple:
            # Made for the offsets that came before; compaction may have put them there.
            group = None
        is_ours = isinstance(group, ModernGroup) and group.type is record.group_type
        if record.value is None and not is_ours:
            return
        if group is None:
            group = ModernGroup(record.group_id, record.group_type)
        if not isinstance(group, ModernGroup) or group.type is not record.group_type:
            raise ValueError(f"{record} for {group}")
        group.apply(record)
        self.put(record.group_id, None if group.is_deleted else group)

    def hold_offsets(self, group_id: str, now_ms: int) -> None:
        """
        See to it that there is a group that committed offsets may belong to.
        """
        if group_id not in self._groups:
            self.create_classic(group_id, now_ms)
