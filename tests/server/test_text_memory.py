from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from sys import getsizeof
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordination.coordinator_runtime.memory import MemoryBudget
from barnabas.coordination.groups.groups import Groups
from barnabas.coordination.groups.offsets.offsets import OffsetStore
from barnabas.coordination.groups.records import OffsetRecord
from barnabas.coordination.share.coordinator.records import ShareRecord
from barnabas.coordination.share.coordinator.state import ShareCoordinatorState
from barnabas.coordination.share.keys import SharePartitionKey
from barnabas.coordination.text_memory import text_bytes
from barnabas.coordination.transactions.state import TransactionState
from barnabas.coordination.transactions.transactional_ids import TransactionalIds, TransactionRecord
from barnabas.protocol.internal_topics.group_records import OffsetCommitValue
from barnabas.protocol.internal_topics.share_state_records import ShareSnapshotValue
from tests.server.transactions.test_memory import of

OTHERS = ["e", "é", "ツ", "𐀀"]
"""One character of each width in UTF-8, which are those in memory, and 2 for the third."""


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_the_bytes_of_a_text_are_at_least_what_python_takes(text: str) -> None:
    text.encode()
    assert getsizeof(text) - getsizeof("") <= text_bytes(text)


def texts(other: str, count: int = 60) -> Iterator[str]:
    """
    Texts with one *other* character among many of one byte.
    """
    for number in range(count):
        yield f"{number:08d}" + "a" * 8_000 + other


def offset_value(metadata: str) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=1,
        leader_epoch=1,
        metadata=metadata,
        commit_timestamp=1,
        expire_timestamp=-1,
        topic_id=UUID(int=0),
    )


def put_metadata(memory: MemoryBudget) -> Callable[[str], Any]:
    store = OffsetStore(memory)
    return lambda text: store.apply(
        OffsetRecord("g", "t", int(text[:8]), offset_value(text)), 1, -1
    )


def put_topics(memory: MemoryBudget) -> Callable[[str], Any]:
    store = OffsetStore(memory)
    return lambda text: store.apply(OffsetRecord("g", text, 0, offset_value("")), 1, 5)


def put_groups(memory: MemoryBudget) -> Callable[[str], Any]:
    groups = Groups(memory)
    return lambda text: groups.create_classic(text, 1)


def put_transactional_ids(memory: MemoryBudget) -> Callable[[str], Any]:
    ids = TransactionalIds(memory)
    state = of(TransactionState.EMPTY)
    return lambda text: ids.apply(TransactionRecord(text, state, 1), 1, -1)


def put_share_states(memory: MemoryBudget) -> Callable[[str], Any]:
    states = ShareCoordinatorState(lambda topic, index: True, updates_per_snapshot=9, memory=memory)
    value = ShareSnapshotValue(
        snapshot_epoch=0,
        state_epoch=0,
        leader_epoch=0,
        start_offset=0,
        delivery_complete_count=0,
        create_timestamp=0,
        write_timestamp=0,
        state_batches=[],
    )
    return lambda text: states.apply(
        ShareRecord(SharePartitionKey(text, UUID(int=1), 0), value), 1, -1
    )


PUTS = [put_metadata, put_topics, put_groups, put_transactional_ids, put_share_states]


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("put", PUTS)
def test_a_budget_counts_at_least_the_memory_of_the_texts_in_it(
    put: Callable[[MemoryBudget], Callable[[str], Any]], other: str
) -> None:
    memory = MemoryBudget("Texts", 2**30)
    made = put(memory)
    made("99999999")
    tracemalloc.start()
    try:
        counted = memory.used_bytes
        before = tracemalloc.get_traced_memory()[0]
        for text in texts(other):
            made(text)
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()

    assert taken <= 1.02 * (memory.used_bytes - counted)
