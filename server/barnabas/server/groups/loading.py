"""
Replaying a partition of the coordinator from its log.

A log that was not compacted yet has many records of each key, and all but the last are decoded for
nothing. So records are only collected at first, by key, as compaction would::

    a1 b1 a2 c1 a3  -->  b1 c1 a3  -->  applied in this order

That is as good as replaying every one of them, for the same reason for which the log may be
compacted: only groups that were made for offsets which are all deleted by now leave no trace. Where
a transaction comes in between, what is collected so far is applied first.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.protocol.records.batch import RecordBatch, batches
from barnabas.storage.log.fetch_isolation import FetchIsolation

if TYPE_CHECKING:
    from barnabas.server.groups.shard_state import ShardState
    from barnabas.storage.log.log import Log

log = logging.getLogger(__name__)


class Loader:
    """
    Feeds the batches of a log to a state.

    Invariants:

    1. ``_latest`` has the last record of each key that is not applied yet, in the order of offsets.
    2. When ``finish`` has returned, the state is what replaying the compacted log would make it.
    """

    def __init__(self, state: ShardState) -> None:
        self._state = state
        self._latest: dict[bytes | None, tuple[int, bytes | None]] = {}

    def add(self, batch: RecordBatch) -> None:
        """
        Take the next batch.

        Raises:
            Exception: as ``ShardState.replay``.
        """
        if batch.is_control or batch.has_producer_id:
            self.finish()
            self._state.replay(batch)
            return
        latest = self._latest
        for record in batch.records():
            key = record.key
            latest.pop(key, None)  # It belongs where its last record is.
            latest[key] = (record.offset, record.value)

    def finish(self) -> None:
        """
        Apply what was collected.

        Raises:
            Exception: as ``ShardState.replay_record``.
        """
        latest, self._latest = self._latest, {}
        for key, (offset, value) in latest.items():
            self._state.replay_record(key, value, offset)


def load(state: ShardState, source: Log, buffer_bytes: int) -> None:
    """
    Apply everything that is in a log.

    Blocks; nobody else may use the state meanwhile, nor append to the log.

    Args:
        buffer_bytes: how much to read at a time; a larger batch is read whole.

    Raises:
        Exception: as ``ShardState.replay`` and ``Log.read``.
    """
    loader = Loader(state)
    offset, end = source.log_start_offset, source.log_end_offset
    while offset < end:
        found = source.read(offset, buffer_bytes, FetchIsolation.LOG_END, True).records
        before = offset
        if found is not None:
            for batch in batches(found.read()):
                loader.add(batch)
                offset = batch.next_offset
        if offset == before:
            # Compaction has left nothing from here to the end.
            break
    loader.finish()
    log.info("Loaded %d groups from a log that ends at offset %d", len(state.groups), end)
