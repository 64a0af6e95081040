"""
State batches: which offsets are in which state, and how two lists of them add up.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from barnabas.protocol.internal_topics.share_state_records import StateBatch


def combine(batches: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """
    What *batches* that overlap add up to, from *start_offset* on; -1 cuts nothing.

    Where they overlap, the one with more deliveries counts, and of two with as many the one in the
    later state: a state never goes back (Kafka ``PersisterStateBatchCombiner``). Neighbours in the
    same state are one batch.
    """
    waiting = sorted(
        (
            (
                max(start_offset, each.first_offset),
                -each.delivery_count,
                -each.delivery_state,
                each.last_offset,
            )
            for each in batches
            if each.last_offset >= start_offset
        ),
        reverse=True,
    )
    combined: list[StateBatch] = []
    offset = start_offset
    # Those that have the offset, the one that counts first, and others that have ended.
    open_batches: list[tuple[int, int, int]] = []
    while waiting or open_batches:
        if not open_batches:
            offset = waiting[-1][0]
        while waiting and waiting[-1][0] <= offset:
            _, count, state, last = waiting.pop()
            heapq.heappush(open_batches, (count, state, last))
        count, state, last = open_batches[0]
        if last < offset:
            heapq.heappop(open_batches)
            continue
        # The one that counts does so until it ends, or until the next one begins.
        end = min(last, waiting[-1][0] - 1) if waiting else last
        _append(combined, offset, end, -state, -count)
        offset = end + 1
    return combined


def _append(
    combined: list[StateBatch], first_offset: int, last_offset: int, state: int, count: int
) -> None:
    """
    Add offsets to the *combined* batches, to the last one if it is their neighbour in that state.
    """
    if combined:
        before = combined[-1]
        if (before.last_offset + 1, before.delivery_state, before.delivery_count) == (
            first_offset,
            state,
            count,
        ):
            first_offset = combined.pop().first_offset
    combined.append(
        StateBatch(
            first_offset=first_offset,
            last_offset=last_offset,
            delivery_state=state,
            delivery_count=count,
        )
    )
