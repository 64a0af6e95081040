"""
The groups of segments that become one when a log is cleaned.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.storage.index.base import LARGEST_RELATIVE_OFFSET
from barnabas.storage.segment.segment import LogSegment


def group_segments_by_size(
    segments: Sequence[LogSegment],
    *,
    max_size: int,
    max_index_size: int,
    uncleanable_offset: int,
) -> list[list[LogSegment]]:
    """
    Divide *segments*, oldest first, into groups that each fit into one segment as they are now, so
    that segments do not become ever smaller (Kafka's Cleaner.groupSegmentsBySize).

    Args:
        max_size: ``segment.bytes``, for the batches.
        max_index_size: ``segment.index.bytes``, for the entries of each index.
        uncleanable_offset: none of the segments has offsets from here on.
    """
    groups: list[list[LogSegment]] = []
    size = offset_index_size = time_index_size = 0
    ends = [segment.base_offset for segment in segments[1:]] + [uncleanable_offset]
    for segment, end in zip(segments, ends, strict=False):
        size += segment.size
        offset_index_size += segment.offset_index.size_in_bytes
        time_index_size += segment.time_index.size_in_bytes
        if (
            groups
            and size <= max_size
            and offset_index_size <= max_index_size
            and time_index_size <= max_index_size
            # The last offset is not known without reading. An empty segment does not have one.
            and (
                segment.size == 0 or end - 1 - groups[-1][0].base_offset <= LARGEST_RELATIVE_OFFSET
            )
        ):
            groups[-1].append(segment)
            continue
        groups.append([segment])
        size = segment.size
        offset_index_size = segment.offset_index.size_in_bytes
        time_index_size = segment.time_index.size_in_bytes
    return groups
