"""
Replaying a partition of the coordinator from its log.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.protocol.record_batch import batches
from barnabas.storage.fetch_isolation import FetchIsolation

if TYPE_CHECKING:
    from barnabas.server.coordinators.shard_state import ShardState
    from barnabas.storage.log import Log

log = logging.getLogger(__name__)


def load(state: ShardState, source: Log, buffer_bytes: int) -> int:
    """
    Apply everything that is in a log, and return how many batches that were.

    Blocks; nobody else may use the state meanwhile, nor append to the log.

    Args:
        buffer_bytes: how much to read at a time; a larger batch is read whole.

    Raises:
        Exception: as ``ShardState.replay`` and ``Log.read``.
    """
    offset, end, count = source.log_start_offset, source.log_end_offset, 0
    while offset < end:
        found = source.read(offset, buffer_bytes, FetchIsolation.LOG_END, True).records
        before = offset
        if found is not None:
            for batch in batches(found.read()):
                state.replay(batch)
                offset = batch.next_offset
                count += 1
        if offset == before:
            # Compaction has left nothing from here to the end.
            break
    log.info("Loaded %d batches up to offset %d: %d groups", count, end, len(state.groups))
    return count
