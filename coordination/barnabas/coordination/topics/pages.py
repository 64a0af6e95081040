"""
Pages of topics: they come in the order of their names, and a cursor says where a page begins
(KIP-966; Kafka ``DescribeTopicPartitionsRequestHandler``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import heapify

from barnabas.coordination.java_strings import string_rank
from barnabas.coordination.steps import map_in_turns
from barnabas.protocol.errors import InvalidRequest
from barnabas.protocol.messages.describe_topic_partitions import Cursor


async def names_from(
    cursor: Cursor | None, asked: Collection[str], names: Iterable[str]
) -> list[tuple[bytes, str]]:
    """
    The topics from the cursor on: a heap in the order of Java.

    Args:
        asked: the topics that the request names, each once; none if it is about all of them.
        names: those, or all.

    Raises:
        InvalidRequest: the cursor points at nothing that is asked for.
    """
    if cursor is None:
        return await _heap(names)
    if asked and cursor.topic_name not in asked:
        raise InvalidRequest(
            "DescribeTopicPartitionsRequest topic list should contain the cursor topic:"
            f" {cursor.topic_name}"
        )
    if cursor.partition_index < 0:
        raise InvalidRequest(
            f"DescribeTopicPartitionsRequest cursor partition must be valid: {cursor}"
        )
    first = string_rank(cursor.topic_name)
    return await _heap(names, first)


async def _heap(names: Iterable[str], first: bytes = b"") -> list[tuple[bytes, str]]:
    """
    Most of a great many are not on the page: to sort all of them would take its time.
    """
    ordered = await map_in_turns(lambda name: (string_rank(name), name), names)
    heap = [each for each in ordered if each[0] >= first]
    heapify(heap)
    return heap
