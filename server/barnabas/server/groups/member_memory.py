"""
The memory that members of groups take, in all groups of a broker together.

A member stays for as long as its session, up to ``group.max.session.timeout.ms``, after its client
has left. Without a limit one client could fill the memory of the broker with members.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from barnabas.protocol.errors import CoordinatorNotAvailable
from barnabas.server.groups.modern.records import ModernRecord, Role

MOST_BYTES: Final = 128 * 1024 * 1024


class Held:
    """
    Bytes that count from the moment when this object is made until it is freed.

    The object that takes the memory refers to it, so that both end together on every path.
    """

    __slots__ = ("_memory", "size")

    def __init__(self, memory: MemberMemory, size: int) -> None:
        self._memory = memory
        self.size = size
        memory.used_bytes += size

    def __del__(self) -> None:
        self._memory.used_bytes -= self.size


class MemberMemory:
    """
    The budget. ``used_bytes`` is the sum of the sizes of all ``Held`` of it.
    """

    __slots__ = ("limit_bytes", "used_bytes")

    def __init__(self, limit_bytes: int = MOST_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0

    def has_room(self, size: int, replaced: Held | None = None) -> bool:
        """
        Whether *size* bytes may take the place of *replaced*. Less than before always may.
        """
        more = size - (0 if replaced is None else replaced.size)
        return more <= 0 or self.used_bytes + more <= self.limit_bytes

    def hold(self, size: int) -> Held:
        """
        Count *size* bytes.
        """
        return Held(self, size)


HELD_ROLES: Final = frozenset({Role.MEMBER, Role.REGEX, Role.TOPOLOGY})
"""
The records with which clients of the later protocols can fill the memory. The number of partitions
bounds the others.
"""
RECORD_BYTES: Final = 2000
"""
The memory of a member with its timers and its assignment, without what its client names.
"""
OBJECT_BYTES: Final = 56


class HeldRecords:
    """
    The memory of the members, patterns and topologies in the groups of one partition that use the
    later protocols. Those that were read from the log do not count, as classic members do not.
    """

    __slots__ = ("_held", "_memory")

    def __init__(self, memory: MemberMemory) -> None:
        self._memory = memory
        self._held: dict[Any, Held] = {}

    def check_room(self, records: Iterable[Any]) -> None:
        """
        See whether there is room for records. Those that need no more than the ones that they
        replace always have it.

        Raises:
            CoordinatorNotAvailable: there is none.
        """
        more = 0
        for record in records:
            if isinstance(record, ModernRecord) and record.role in HELD_ROLES:
                held = self._held.get(record.key)
                more += _bytes_of(record) - (0 if held is None else held.size)
        if not self._memory.has_room(more):
            raise CoordinatorNotAvailable("Members of groups have taken all the memory for them.")

    def apply(self, record: ModernRecord) -> None:
        """
        Count a record, or count it no more.
        """
        if record.role not in HELD_ROLES:
            return
        if record.value is None:
            self._held.pop(record.key, None)
        else:
            self._held[record.key] = self._memory.hold(_bytes_of(record))


def _bytes_of(record: ModernRecord) -> int:
    """
    About the memory that a record takes once it is applied, in bytes.
    """
    if record.value is None:
        return 0
    return RECORD_BYTES + _size(record.key) + _size(record.value)


def _size(value: Any) -> int:
    if value is None or isinstance(value, int):
        return 0
    size = OBJECT_BYTES
    if isinstance(value, str | bytes):
        size += len(value)
    elif isinstance(value, list):
        for part in value:
            size += _size(part)
    else:
        for name in value.__match_args__:
            size += _size(getattr(value, name))
    return size
