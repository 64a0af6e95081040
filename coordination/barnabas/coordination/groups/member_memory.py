"""
The memory that members of groups take which use the later protocols.

A member stays for as long as its session, up to ``group.max.session.timeout.ms``, after its client
has left. Without a limit one client could fill the memory of the broker with members.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from barnabas.coordination.coordinator_runtime.memory import Held, MemoryBudget
from barnabas.coordination.groups.modern.records import ModernRecord, Role
from barnabas.coordination.text_memory import text_bytes

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
MANY: Final = 1000
"""
How many texts a list may have whose sizes are added up one by one.
"""


class HeldRecords:
    """
    The memory of the members, patterns and topologies in the groups of one partition that use the
    later protocols. Those that were read from the log do not count, as classic members do not.
    """

    __slots__ = ("_held", "_memory")

    def __init__(self, memory: MemoryBudget) -> None:
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
        self._memory.check_room(more)

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
    if isinstance(value, str):
        size += text_bytes(value)
    elif isinstance(value, bytes):
        size += len(value)
    elif isinstance(value, list):
        if len(value) > MANY and isinstance(value[0], str):
            return size + _size_of_texts(value)
        for part in value:
            size += _size(part)
    else:
        for name in value.__match_args__:
            size += _size(getattr(value, name))
    return size


def _size_of_texts(texts: list[str]) -> int:
    joined = "".join(texts)
    size = len(joined) if joined.isascii() else sum(map(text_bytes, texts))
    return size + OBJECT_BYTES * len(texts)
