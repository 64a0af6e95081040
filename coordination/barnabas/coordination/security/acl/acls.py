"""
All access control entries, by their ids and by what they match.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeAlias
from uuid import UUID

from barnabas.coordination.security.acl.bindings import WILDCARD, AclBinding, PatternType

Entries: TypeAlias = dict[str, dict[UUID, AclBinding]]
"""
The entries with one name and pattern, by principal.
"""


class Acls:
    """
    The access control entries of a cluster.

    Invariants:

    1. An entry is found by its id, by the type, pattern and name of its resource, and by its
       principal.
    2. ``on_change`` has been called since the last change.

    Several ids may have equal entries: Kafka makes none, but reads them.
    """

    __slots__ = ("_by_id", "_by_principal", "_lengths", "_patterns", "_times", "on_change")

    def __init__(self) -> None:
        self._by_id: dict[UUID, AclBinding] = {}
        self._times: Counter[AclBinding] = Counter()
        self._by_principal: dict[tuple[int, str], dict[UUID, AclBinding]] = {}
        self._patterns: dict[tuple[int, int, str], Entries] = {}
        self._lengths: dict[int, Counter[int]] = {}
        """How many prefixes there are of each length, by the type of their resource."""
        self.on_change: list[Callable[[], object]] = []

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, entry: AclBinding) -> bool:
        return entry in self._times

    def items(self) -> list[tuple[UUID, AclBinding]]:
        """
        The ids and the entries, in the order in which they were made.
        """
        return list(self._by_id.items())

    def has_id(self, acl_id: UUID) -> bool:
        """
        Whether an entry has that id.
        """
        return acl_id in self._by_id

    def add(self, acl_id: UUID, entry: AclBinding) -> None:
        """
        Add an entry, in place of the one with that id.
        """
        if acl_id in self._by_id:
            self.remove(acl_id)
        self._by_id[acl_id] = entry
        self._times[entry] += 1
        kind, name, pattern = entry.resource_type, entry.resource_name, entry.pattern_type
        entries = self._patterns.get((kind, pattern, name))
        if entries is None:
            entries = self._patterns[kind, pattern, name] = {}
            if pattern == PatternType.PREFIXED:
                self._lengths.setdefault(kind, Counter())[len(name)] += 1
        entries.setdefault(entry.principal, {})[acl_id] = entry
        self._by_principal.setdefault((kind, entry.principal), {})[acl_id] = entry
        self._changed()

    def remove(self, acl_id: UUID) -> None:
        """
        Remove the entry with an id.

        Raises:
            KeyError: none has it.
        """
        entry = self._by_id.pop(acl_id)
        self._times[entry] -= 1
        if not self._times[entry]:
            del self._times[entry]
        kind, name, pattern = entry.resource_type, entry.resource_name, entry.pattern_type
        entries = self._patterns[kind, pattern, name]
        of_principal = entries[entry.principal]
        del of_principal[acl_id]
        if not of_principal:
            del entries[entry.principal]
        del self._by_principal[kind, entry.principal][acl_id]
        if not self._by_principal[kind, entry.principal]:
            del self._by_principal[kind, entry.principal]
        if not entries:
            del self._patterns[kind, pattern, name]
            if pattern == PatternType.PREFIXED:
                lengths = self._lengths[kind]
                lengths[len(name)] -= 1
                if not lengths[len(name)]:
                    del lengths[len(name)]
        self._changed()

    def _changed(self) -> None:
        for changed in self.on_change:
            changed()

    def about(self, resource_type: int, name: str) -> Iterator[Entries]:
        """
        The entries whose pattern stands for the resource *name*.
        """
        literal = int(PatternType.LITERAL)
        found = self._patterns.get((resource_type, literal, name))
        if found is not None:
            yield found
        if name != WILDCARD:
            found = self._patterns.get((resource_type, literal, WILDCARD))
            if found is not None:
                yield found
        for length in self._lengths.get(resource_type, ()):
            if length <= len(name):
                found = self._patterns.get(
                    (resource_type, int(PatternType.PREFIXED), name[:length])
                )
                if found is not None:
                    yield found

    def of_principal(self, resource_type: int, principal: str) -> list[AclBinding]:
        """
        The entries of *principal* about resources of one type.
        """
        return list(self._by_principal.get((resource_type, principal), {}).values())
