"""
Fetch of one partition as today's consumers send it, without the objects of the general codec.

Who reads a partition from its beginning sends such a request for each piece of it, and waits: a
consumer that catches up, and every task of Spark's Kafka connector. What is read and written here
is what ``codec`` reads and writes; whatever is not of the plain form is left to it::

    replica_id -1 (before v15)                  throttle_time_ms 0, error_code 0
    max_wait_ms, min_bytes, max_bytes
    isolation_level
    session_id, session_epoch                   session_id
    topics          one, by its id              topics          the same
    partitions      one                         partitions      the same
                                                  the records
    forgotten_topics_data   none
    rack_id
    no tagged fields
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from struct import Struct
from typing import Final

from barnabas.protocol.codec.primitives import compact_length
from barnabas.protocol.messages.fetch import FetchPartition

FIRST_TOPIC_ID_VERSION: Final = 13
FIRST_REPLICA_STATE_VERSION: Final = 15

_READ_COMMITTED: Final = 1
_CONSUMER: Final = b"\xff\xff\xff\xff"
_CONSUMER_BYTES: Final = 4
_REQUEST: Final = Struct(">4xiibiiB16sBiiqiqiBBB")
"""
Behind the longest wait: least and most bytes, isolation level, session id and epoch; a count of
topics, the id of the one; a count of partitions, the one; two counts of tagged fields, behind the
partition and behind the topic; a count of topics to be forgotten.
"""
_REQUEST_BYTES: Final = 74
_NONE: Final = 1
"""As arrays and strings have their counts, one more than there are."""
_ONE: Final = 2
_NO_TAGS: Final = 0
_LONGEST_RACK: Final = 126
"""What has a length of one byte."""

_HEAD: Final = Struct(">iixihiB16sBihqqq")
"""
The size of the frame, the correlation id, no tagged fields, throttle time, error code, session id;
one topic, its id; one partition, its index, error code, high watermark, last stable offset, log
start offset.
"""
_HEAD_BYTES_COUNTED: Final = 63
"""Without the size."""
_NOT_LOOKED_AT: Final = b"\0\xff\xff\xff\xff"
"""
Null for the aborted transactions, which only who reads committed records has to know of; no
preferred read replica.
"""
_NONE_ABORTED: Final = b"\1\xff\xff\xff\xff"
"""No aborted transactions; no preferred read replica."""
_MIDDLE_BYTES: Final = 5
_TAIL: Final = bytes(3)
"""Partition, topic and response have no tagged fields."""
_TAIL_BYTES: Final = 3


class PlainFetch:
    """
    A request of the plain form.
    """

    __slots__ = (
        "isolation_level",
        "max_bytes",
        "min_bytes",
        "partition",
        "session_epoch",
        "session_id",
        "topic_id",
    )

    def __init__(
        self,
        *,
        min_bytes: int,
        max_bytes: int,
        isolation_level: int,
        session_id: int,
        session_epoch: int,
        topic_id: bytes,
        partition: FetchPartition,
    ) -> None:
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topic_id = topic_id
        self.partition = partition


def read_plain_fetch(frame: memoryview, position: int, version: int) -> PlainFetch | None:
    """
    The request whose body begins at *position*, or None if it is not of the plain form.
    """
    if version < FIRST_TOPIC_ID_VERSION:
        return None
    body = frame[position:].tobytes()
    if version < FIRST_REPLICA_STATE_VERSION:
        if not body.startswith(_CONSUMER):
            return None
        body = body[_CONSUMER_BYTES:]
    if not _has_plain_end(body):
        return None
    topics: int
    partitions: int
    partition_tags: int
    topic_tags: int
    forgotten: int
    (
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        topic_id,
        partitions,
        index,
        current_leader_epoch,
        fetch_offset,
        last_fetched_epoch,
        log_start_offset,
        partition_max_bytes,
        partition_tags,
        topic_tags,
        forgotten,
    ) = _REQUEST.unpack_from(body)
    if topics != _ONE or partitions != _ONE or forgotten != _NONE:
        return None
    if partition_tags != _NO_TAGS or topic_tags != _NO_TAGS:
        return None
    partition = FetchPartition(
        partition=index,
        current_leader_epoch=current_leader_epoch,
        fetch_offset=fetch_offset,
        last_fetched_epoch=last_fetched_epoch,
        log_start_offset=log_start_offset,
        partition_max_bytes=partition_max_bytes,
    )
    return PlainFetch(
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        topic_id=topic_id,
        partition=partition,
    )


def _has_plain_end(body: bytes) -> bool:
    """
    Whether, behind what has always the same size, there is a rack and nothing else.
    """
    size = len(body) - _REQUEST_BYTES - 1 - 1  # the length of the rack, the count of tagged fields
    return (
        0 <= size <= _LONGEST_RACK
        and body[_REQUEST_BYTES] == size + 1
        and body[_REQUEST_BYTES + 1 + size] == _NO_TAGS
    )


def plain_fetch_answer(
    correlation_id: int,
    request: PlainFetch,
    *,
    high_watermark: int,
    last_stable_offset: int,
    log_start_offset: int,
    records_bytes: int,
) -> tuple[bytes, bytes]:
    """
    What stands before the records in the frame of the answer, and what stands behind them. No
    transaction in them was aborted.
    """
    is_committed = request.isolation_level == _READ_COMMITTED
    length = compact_length(records_bytes)
    size = _HEAD_BYTES_COUNTED + _MIDDLE_BYTES + len(length) + records_bytes + _TAIL_BYTES
    head = _HEAD.pack(
        size,
        correlation_id,
        0,
        0,
        request.session_id,
        _ONE,
        request.topic_id,
        _ONE,
        request.partition.partition,
        0,
        high_watermark,
        last_stable_offset,
        log_start_offset,
    )
    return head + (_NONE_ABORTED if is_committed else _NOT_LOOKED_AT) + length, _TAIL
