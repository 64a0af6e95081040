"""
Serving Fetch without decoding it first, where it is of the plain form: one partition, read from
where there are records.

::

    frame --> partition --> session --> records found --> session moves --> the frame of the answer
                  |            |              |
             not served    another     none, too few, or not
             any more       state      in the page cache: the handler

Nothing is changed before the records are found, so whatever is found to be otherwise is left to the
handler, which looks again, and waits, or answers with Kafka's errors.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import KafkaError
from barnabas.protocol.hot_messages.plain_fetch import (
    PlainFetch,
    plain_fetch_answer,
    read_plain_fetch,
)
from barnabas.server.fetch.sessions import FINAL_EPOCH, NO_SESSION
from barnabas.server.fetch.stored_records import StoredRecords
from barnabas.storage.log.fetch_isolation import FetchIsolation

if TYPE_CHECKING:
    from barnabas.protocol.messages.fetch import FetchPartition
    from barnabas.server.fetch.sessions import FetchSession, FetchSessions
    from barnabas.server.network.sender import Part
    from barnabas.server.partitions.partition import FetchResult, Partition
    from barnabas.server.requests.context import Parts
    from barnabas.storage.segment.fetch_data import FileSlice

_ISOLATION: Final = (FetchIsolation.HIGH_WATERMARK, FetchIsolation.TXN_COMMITTED)


def fetch_plain(
    frame: memoryview,
    position: int,
    version: int,
    correlation_id: int,
    parts: Parts,
    _connection: object,
) -> list[Part] | None:
    """
    Serve a request of a consumer for records that are there, on its own or as the next one of a
    session that has this partition only.
    """
    request = read_plain_fetch(frame, position, version)
    if request is None or not 0 <= request.isolation_level < len(_ISOLATION):
        return None
    asked = request.partition
    partition = parts.partitions.find(request.topic_id, asked.partition, is_id=True)
    if partition is None:
        return None
    session: FetchSession | None = None
    if request.session_id != NO_SESSION or request.session_epoch != FINAL_EPOCH:
        session = _session_of(request, partition, parts.fetch_sessions)
        if session is None:
            return None
    max_bytes = min(request.max_bytes, parts.config.fetch_max_bytes)
    found = _find(partition, asked, max_bytes, _ISOLATION[request.isolation_level])
    if found is None:
        return None
    result, records = found
    if records.size < max(1, min(request.min_bytes, max_bytes)):
        return None
    if session is not None:
        session.use(parts.clock.now_ms())
        (wanted,) = session.partitions.values()
        wanted.request = asked
        wanted.told(result.high_watermark, result.log_start_offset)
    head, tail = plain_fetch_answer(
        correlation_id,
        request,
        high_watermark=result.high_watermark,
        last_stable_offset=result.last_stable_offset,
        log_start_offset=result.log_start_offset,
        records_bytes=records.size,
    )
    return [head, StoredRecords(records, partition), tail]


def _session_of(
    request: PlainFetch, partition: Partition, sessions: FetchSessions
) -> FetchSession | None:
    """
    The session of which *request* is the next one, if it has this partition and no other.
    """
    try:
        session = sessions.get(request.session_id)
    except KafkaError:
        return None
    if session is None or session.epoch != request.session_epoch or not session.uses_topic_ids:
        return None
    if len(session.partitions) != 1:
        return None
    (wanted,) = session.partitions.values()
    return session if wanted.partition is partition else None


def _find(
    partition: Partition, asked: FetchPartition, max_bytes: int, isolation: FetchIsolation
) -> tuple[FetchResult, FileSlice] | None:
    """
    Where the records are, unless there is something else to tell.
    """
    # Most of those who wait for records are known by this.
    if asked.fetch_offset >= partition.log.high_watermark:
        return None
    try:
        result = partition.read(
            asked.fetch_offset,
            min(asked.partition_max_bytes, max_bytes),
            isolation,
            min_one_message=True,
            current_leader_epoch=asked.current_leader_epoch,
            last_fetched_epoch=asked.last_fetched_epoch,
            nowait=True,
        )
    except Exception:  # whatever it is, the handler meets it again and knows what to say
        return None
    data = result.data
    if data is None or data.records is None or data.aborted_transactions:
        return None
    return result, data.records
