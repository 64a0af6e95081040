"""
Finding the bytes of a read.

A read returns bytes of one segment: from the batch that holds its first offset up to its limit, or
to the bound of its isolation. It may end within a batch. It takes no lock: the segments are those
of the moment at which it began.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import OffsetOutOfRange
from barnabas.storage.index.offset_index import OffsetPosition
from barnabas.storage.index.txn_index import AbortedTxn
from barnabas.storage.segment.fetch_data import AbortedTransaction, FetchDataInfo
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.segment.segments import LogSegments

MOST_ABORTED: Final = 10_000
"""
How many aborted transactions a read may return: with more, it finds fewer bytes.
"""
LEAST_BYTES: Final = 64 * 1024
"""
A read of so few bytes returns all of them: those that began in it, a few hundred, and those that
were open before, at most one for each producer.
"""


def read_segments(
    segments: LogSegments,
    start_offset: int,
    max_length: int,
    *,
    min_one_message: bool,
    bound: LogOffsetMetadata,
    end: LogOffsetMetadata,
    include_aborted_txns: bool = False,
    nowait: bool = False,
) -> FetchDataInfo:
    """
    Find up to *max_length* bytes from *start_offset* on (Kafka's LocalLog.read).

    Args:
        min_one_message: at least the first batch, also if it is larger than *max_length*.
        bound: nothing from here on is found. Without a position it bounds every segment: no bytes.
        end: the end of the log.

    Raises:
        OffsetOutOfRange: *start_offset* is below the first segment, or beyond the end.
        WouldBlock: with *nowait*, the page cache lacks bytes that are searched.
    """
    end_offset = end.message_offset
    segment = segments.floor_segment(start_offset)
    if start_offset > end_offset or segment is None:
        raise out_of_range(segments, start_offset, segments.first_segment_base_offset or 0, end)
    none_aborted: list[AbortedTransaction] | None = [] if include_aborted_txns else None
    if start_offset == bound.message_offset:
        return FetchDataInfo(bound, None, aborted_transactions=none_aborted)
    if start_offset > bound.message_offset:
        place = find_offset(segments, start_offset, end, nowait=nowait)
        return FetchDataInfo(place, None, aborted_transactions=none_aborted)
    while segment is not None:
        found = segment.read(
            start_offset,
            max_length,
            _max_position(segment, bound),
            min_one_message=min_one_message,
            nowait=nowait,
        )
        if found is not None:
            if not include_aborted_txns:
                return found
            aborted = _aborted_transactions(
                segments, segment, start_offset, found, end_offset, nowait=nowait
            )
            size = 0 if found.records is None else found.records.size
            if len(aborted) <= MOST_ABORTED or size <= LEAST_BYTES or found.first_entry_incomplete:
                found.aborted_transactions = aborted
                return found
            max_length, min_one_message = size // 2, True
            continue
        # Compaction may leave nothing from an offset to the end of its segment.
        segment = segments.higher_segment(segment.base_offset)
    return FetchDataInfo(end, None)


def find_offset(
    segments: LogSegments, offset: int, end: LogOffsetMetadata, *, nowait: bool = False
) -> LogOffsetMetadata:
    """
    The place of the batch with *offset*.

    Raises: as ``read_segments``.
    """
    return read_segments(
        segments, offset, 1, min_one_message=False, bound=end, end=end, nowait=nowait
    ).fetch_offset_metadata


def _max_position(segment: LogSegment, bound: LogOffsetMetadata) -> int | None:
    base_offset = bound.segment_base_offset
    if segment.base_offset < base_offset:
        return segment.size
    if segment.base_offset == base_offset and not bound.message_offset_only:
        return bound.relative_position_in_segment
    return None


def _aborted_transactions(
    segments: LogSegments,
    segment: LogSegment,
    start_offset: int,
    found: FetchDataInfo,
    end_offset: int,
    *,
    nowait: bool,
) -> list[AbortedTransaction]:
    """
    The aborted transactions of which the bytes that were found may have a part.

    The offset up to which these reach is not known without reading them. An index entry behind them
    bounds it, or else the next segment does, or the end of the log.
    """
    where = found.fetch_offset_metadata
    size = 0 if found.records is None else found.records.size
    entry = segment.offset_index.fetch_upper_bound_offset(
        OffsetPosition(where.message_offset, where.relative_position_in_segment),
        size,
    )
    if entry is not None:
        upper = entry.offset
    else:
        following = segments.higher_segment(segment.base_offset)
        upper = end_offset if following is None else following.base_offset
    return [
        AbortedTransaction(txn.producer_id, txn.first_offset)
        for txn in collect_aborted_txns(
            segments,
            segment,
            start_offset,
            upper,
            most=None if size <= LEAST_BYTES else MOST_ABORTED,
            nowait=nowait,
        )
    ]


def collect_aborted_txns(
    segments: LogSegments,
    first: LogSegment,
    start_offset: int,
    upper_bound_offset: int,
    *,
    most: int | None = None,
    nowait: bool = False,
) -> list[AbortedTxn]:
    """
    The transactions that were aborted at *start_offset* or later, and began below the bound.

    Args:
        first: the segment to begin with; later ones are searched as far as they may matter.
        most: end the search after so many and one more.

    Raises:
        WouldBlock: with *nowait*, very many entries have to be looked at.
    """
    found: list[AbortedTxn] = []
    for segment in (first, *segments.higher_segments(first.base_offset)):
        result = segment.txn_index.collect_aborted_txns(
            start_offset, upper_bound_offset, most=most, nowait=nowait
        )
        found += result.aborted_transactions
        if result.is_complete or (most is not None and len(found) > most):
            break
    return found


def out_of_range(
    segments: LogSegments, offset: int, start: int, end: LogOffsetMetadata
) -> OffsetOutOfRange:
    """
    The error for a read of *offset*, which the log does not have.
    """
    return OffsetOutOfRange(
        f"Received request for offset {offset} for partition {segments.topic_partition}, but we "
        f"only have log segments upto {end.message_offset} and a start offset of {start}."
    )
