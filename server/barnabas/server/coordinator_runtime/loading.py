"""
The replay of a partition of an internal topic from its log (Kafka's ``CoordinatorLoaderImpl``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.coordination.coordinator_runtime.loading import Loader, Playback
from barnabas.protocol.records.batch import RecordBatch, batches
from barnabas.storage.log.fetch_isolation import FetchIsolation

if TYPE_CHECKING:
    from barnabas.storage.log.log import Log


def load(playback: Playback, source: Log, buffer_bytes: int, *, is_compacted: bool = True) -> None:
    """
    Apply all batches of a log. The call blocks; the state must not be used, and the log not be
    appended to, until it returns.

    Args:
        buffer_bytes: the size of a read; a larger batch is read whole.
        is_compacted: see ``Loader``.

    Raises:
        Exception: see ``Playback`` and ``Log.read``.
    """
    loader = Loader(playback, is_compacted=is_compacted)
    for batch in _batches(source, buffer_bytes):
        loader.add(batch)
    loader.finish()


def _batches(source: Log, buffer_bytes: int) -> Iterator[RecordBatch]:
    offset, end = source.log_start_offset, source.log_end_offset
    while offset < end:
        found = source.read(offset, buffer_bytes, FetchIsolation.LOG_END, True).records
        before = offset
        if found is not None:
            for batch in batches(found.read()):
                yield batch
                offset = batch.next_offset
        if offset == before:
            return  # Compaction has removed everything from here to the end.
