"""
Records of the metadata log that are kept for whoever opens it next, and not acted upon.

Access control lists, SCRAM credentials, client quotas and delegation tokens: an Apache Kafka that
starts on our directory finds them as it left them. Of each key the latest record counts, and a
record that removes the key takes it away, which is all that one has to know to carry them through
snapshots.
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
    records.AccessControlEntryRecord: lambda record: record.id,
    records.UserScramCredentialRecord: lambda record: (record.mechanism, record.name),
    records.DelegationTokenRecord: lambda record: record.token_id,
}
_REMOVES: Final[Mapping[type[Message], type[Message]]] = {
    records.RemoveAccessControlEntryRecord: records.AccessControlEntryRecord,
    records.RemoveUserScramCredentialRecord: records.UserScramCredentialRecord,
    records.RemoveDelegationTokenRecord: records.DelegationTokenRecord,
}


class KeptRecords:
    """
    The latest record of each key, by type, in the order in which the keys came.
    """

    __slots__ = ("_by_type",)

    def __init__(self) -> None:
        self._by_type: dict[type[Message], dict[Hashable, Message]] = {kind: {} for kind in _SETS}

    @staticmethod
    def types() -> tuple[type[Message], ...]:
        """
        The types of records that :meth:`apply` takes.
        """
        return (*_SETS, *_REMOVES)

    def apply(self, record: Message) -> None:
        """
        Keep *record*, or forget the one that it removes.
        """
        kind = _REMOVES.get(type(record))
        removes = kind is not None or getattr(record, "remove", False)
        kind = kind or type(record)
        key = _SETS[kind](record)
        if removes:
            self._by_type[kind].pop(key, None)
        else:
            self._by_type[kind][key] = record

    def of_type(self, kind: type[Message]) -> Iterator[Message]:
        """
        The kept records of one type.
        """
        return iter(self._by_type[kind].values())
