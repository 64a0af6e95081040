"""
Records of the metadata log that are kept as they are: SCRAM credentials, client quotas and
delegation tokens.

A snapshot has the last record of each key that is not removed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, Final

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.internal_topics import metadata_records as records


def _quota_key(record: records.ClientQuotaRecord) -> Hashable:
    entity = sorted((part.entity_type, part.entity_name or "") for part in record.entity)
    defaults = sorted(part.entity_type for part in record.entity if part.entity_name is None)
    return (*entity, *defaults, record.key)


_SETS: Final[Mapping[type[Message], Callable[[Any], Hashable]]] = {
    records.ClientQuotaRecord: _quota_key,
    records.UserScramCredentialRecord: lambda record: (record.mechanism, record.name),
    records.DelegationTokenRecord: lambda record: record.token_id,
}
_REMOVES: Final[Mapping[type[Message], type[Message]]] = {
    records.RemoveUserScramCredentialRecord: records.UserScramCredentialRecord,
    records.RemoveDelegationTokenRecord: records.DelegationTokenRecord,
}


class KeptRecords:
    """
    The last record of each key, by type, in the order of the first records.
    """

    __slots__ = ("_by_type", "_changes")

    def __init__(self) -> None:
        self._by_type: dict[type[Message], dict[Hashable, Message]] = {kind: {} for kind in _SETS}
        self._changes: dict[type[Message], int] = dict.fromkeys(_SETS, 0)

    @staticmethod
    def types() -> tuple[type[Message], ...]:
        """
        The types of records that :meth:`apply` takes.
        """
        return (*_SETS, *_REMOVES)

    def apply(self, record: Message) -> None:
        """
        Keep *record*, or drop the one that it removes.
        """
        kind = _REMOVES.get(type(record))
        removes = kind is not None or getattr(record, "remove", False)
        kind = kind or type(record)
        key = _SETS[kind](record)
        self._changes[kind] += 1
        if removes:
            self._by_type[kind].pop(key, None)
        else:
            self._by_type[kind][key] = record

    def get(self, kind: type[Message], key: Hashable) -> Message | None:
        """
        The kept record of one type with a *key*; None if there is none.
        """
        return self._by_type[kind].get(key)

    def count(self, kind: type[Message]) -> int:
        """
        How many records of one type are kept.
        """
        return len(self._by_type[kind])

    def changes(self, kind: type[Message]) -> int:
        """
        How often the records of one type have changed.
        """
        return self._changes[kind]

    def of_type(self, kind: type[Message]) -> Iterator[Message]:
        """
        The kept records of one type.
        """
        return iter(self._by_type[kind].values())
