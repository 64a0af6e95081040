"""
Records, as a test writes and reads them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple, TypeAlias

from barnabas.client.batches import BatchBuilder
from barnabas.client.partitioner import partition_of_key
from barnabas.testing.shown import time_of

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
"""
Names and values. Names may repeat.
"""

Bytes: TypeAlias = "bytes | str | None"
"""
A key or a value. Text is encoded as UTF-8.
"""


class Record(NamedTuple):
    """
    A record of a topic.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since 1970 UTC; -1 if the record has none."""
    key: bytes | None
    value: bytes | None
    headers: Headers = ()

    @property
    def time(self) -> datetime:
        """
        The timestamp as a moment in UTC.

        Raises:
            ValueError: it is outside the years 1 to 9999.
        """
        return time_of(self.timestamp)


class NewRecord(NamedTuple):
    """
    A record to append.
    """

    value: Bytes
    key: Bytes = None
    timestamp: int | None = None
    """Milliseconds since 1970 UTC; None is the time of the broker's clock."""
    headers: Iterable[tuple[str, bytes | None]] = ()
    partition: int | None = None
    """None: the hash of the key decides, or the records without a key take turns."""


Appendable: TypeAlias = "Bytes | tuple[Bytes, Bytes] | NewRecord"
"""
A value, a key and a value, or a ``NewRecord``.
"""


def encoded(
    records: Iterable[Appendable], *, partitions: int, now_ms: int, most_bytes: int
) -> list[tuple[int, bytes]]:
    """
    Encode records into batches, each with the number of its partition.

    Keys choose the partition as in Kafka's Java producer. Records without a key take turns, from
    partition 0 on.

    Args:
        partitions: the number of partitions of the topic.
        now_ms: the timestamp of the records that have none.
        most_bytes: the size of a batch, unless it is of a single record.

    Raises:
        TypeError: a record is none of the types of ``Appendable``.
    """
    builders: dict[int, BatchBuilder] = {}
    turn = 0
    for given in records:
        timestamp, partition, key = now_ms, None, None
        headers: Headers = ()
        if isinstance(given, NewRecord):
            value, key = _as_bytes(given.value), _as_bytes(given.key)
            partition, headers = given.partition, tuple(given.headers)
            timestamp = now_ms if given.timestamp is None else given.timestamp
        elif isinstance(given, tuple):
            key, value = map(_as_bytes, _pair(given))
        else:
            value = _as_bytes(given)
        if partition is None:
            if partitions == 1:
                partition = 0
            elif key is not None:
                partition = partition_of_key(key, partitions)
            else:
                partition = turn % partitions
                turn += 1
        builder = builders.get(partition)
        if builder is None:
            builder = builders[partition] = BatchBuilder(most_bytes)
        builder.add(timestamp, key, value, headers)
    return [
        (partition, batch) for partition, builder in builders.items() for batch in builder.batches()
    ]


def _pair(given: tuple[Bytes, ...]) -> tuple[Bytes, ...]:
    if len(given) != 2:
        raise TypeError(f"a tuple to append is (key, value), not {given!r}")
    return given


def _as_bytes(given: Bytes) -> bytes | None:
    if given is None or isinstance(given, bytes):
        return given
    if isinstance(given, str):
        return given.encode()
    raise TypeError(f"a key or value is bytes, str or None, not {given!r}")
