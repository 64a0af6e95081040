"""
The replay of a partition of an internal topic from its log (Kafka's ``CoordinatorLoaderImpl``).

A log that was not compacted yet has many records of each key, and all but the last are decoded in
vain. The loader therefore collects the records by key first, as compaction would::

    a1 b1 a2 c1 a3  -->  b1 c1 a3  -->  applied in this order

The result is that of a replay of all records, for the same reason that allows compaction: only a
group that was created for offsets, all of which are deleted, leaves no trace. A batch of a
transaction, or its marker, is applied after everything that was collected before it.

A topic that is not compacted may have records that add to earlier ones of their key. There is
nothing to collect then: all records are applied, one after the other.
"""

from __future__ import annotations

from typing import Protocol

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records.batch import RecordBatch
from barnabas.storage.errors import WRITTEN_LATER


class LaterRecord(DecodeError):
    """
    The value of a record is of a version that this release does not know.
    """

    def __init__(self, schema: str, version: int) -> None:
        super().__init__(f"{schema} v{version} is not known. {WRITTEN_LATER}")


class Playback(Protocol):
    """
    A state that records are applied to (Kafka's ``CoordinatorPlayback``).
    """

    def replay(self, batch: RecordBatch) -> None:
        """
        Apply a batch of a transaction, a control batch, or one of a topic that is not compacted.

        Raises:
            DecodeError, KafkaError, ValueError: no coordinator writes this batch.
        """

    def replay_record(self, key: bytes | None, value: bytes | None, record_offset: int) -> None:
        """
        Apply a record that belongs to no transaction.

        Raises:
            DecodeError, ValueError: no coordinator writes this record.
        """


class Loader:
    """
    Applies the batches of a log to a state.

    Invariants:

    1. ``_latest`` has the last record of each key that is not applied yet, in the order of offsets.
    2. After ``finish`` the state is the result of a replay of the compacted log.
    """

    def __init__(self, playback: Playback, *, is_compacted: bool = True) -> None:
        """
        Args:
            is_compacted: the last record of each key counts, and no other.
        """
        self._playback = playback
        self._is_compacted = is_compacted
        self._latest: dict[bytes | None, tuple[int, bytes | None]] = {}

    def add(self, batch: RecordBatch) -> None:
        """
        Take the next batch.

        Raises:
            Exception: see ``Playback.replay``.
        """
        if batch.is_control or batch.has_producer_id or not self._is_compacted:
            self.finish()
            self._playback.replay(batch)
            return
        latest = self._latest
        for record in batch.records():
            key = record.key
            latest.pop(key, None)  # The key moves to the place of its last record.
            latest[key] = (record.offset, record.value)

    def finish(self) -> None:
        """
        Apply the collected records.

        Raises:
            Exception: see ``Playback.replay_record``.
        """
        latest, self._latest = self._latest, {}
        for key, (offset, value) in latest.items():
            self._playback.replay_record(key, value, offset)
