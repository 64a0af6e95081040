from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.internal_topics.group_records import OffsetCommitValue
from barnabas.protocol.records.batch import NO_PRODUCER_ID
from barnabas.server.coordinator_runtime.memory import MemoryBudget
from barnabas.server.groups.offsets.offsets import OffsetStore
from barnabas.server.groups.records import OffsetRecord


def record(offset: int | None, topic: str = "t", partition: int = 0) -> OffsetRecord:
    value = None
    if offset is not None:
        value = OffsetCommitValue(
            offset=offset,
            leader_epoch=-1,
            metadata="",
            commit_timestamp=0,
            expire_timestamp=-1,
            topic_id=ZERO_UUID,
        )
    return OffsetRecord("g", topic, partition, value)


def empty_store() -> OffsetStore:
    return OffsetStore(MemoryBudget("Offsets", 2**20))


class Log:
    """
    A store, and the offset of the next record that is applied to it.
    """

    def __init__(self) -> None:
        self.store = empty_store()
        self.next_offset = 0

    def write(self, offset: int | None, producer_id: int = NO_PRODUCER_ID, **where: Any) -> None:
        self.store.apply(record(offset, **where), self.next_offset, producer_id)
        self.next_offset += 1

    def end(self, producer_id: int, *, committed: bool) -> None:
        self.store.end_transaction(producer_id, committed=committed)
        self.next_offset += 1

    @property
    def committed(self) -> int | None:
        offset = self.store.committed.get("g", "t", 0)
        return None if offset is None else offset.offset

    @property
    def pending(self) -> set[tuple[str, int]]:
        return set(self.store.pending_partitions("g"))


def test_last_commit_counts_until_a_tombstone() -> None:
    log = Log()
    log.write(1)
    log.write(2)
    assert 2 == log.committed

    log.write(None)
    assert log.committed is None
    assert not log.store.committed


def test_tombstone_without_an_offset_changes_nothing() -> None:
    log = Log()
    log.write(None)
    log.write(1, partition=1)
    log.write(None, partition=2)

    assert [1] == [o.offset for _, _, _, o in log.store.committed]


def test_transactional_offsets_are_pending_until_the_commit_marker() -> None:
    log = Log()
    log.write(1)
    log.write(2, producer_id=7)
    assert 1 == log.committed
    assert {("t", 0)} == log.pending

    log.end(7, committed=True)
    assert 2 == log.committed
    assert set() == log.pending


def test_offsets_of_an_aborted_transaction_are_dropped() -> None:
    log = Log()
    log.write(1)
    log.write(2, producer_id=7)

    log.end(7, committed=False)

    assert 1 == log.committed
    assert set() == log.pending


def test_later_record_counts_among_two_commits() -> None:
    """
    Not the later marker: after compaction only the order of records is left.
    """
    log = Log()
    log.write(2, producer_id=7)
    log.write(3)

    log.end(7, committed=True)

    assert 3 == log.committed


def test_offsets_of_several_transactions_are_separate() -> None:
    """
    A partition is unstable while any of them is open.
    """
    log = Log()
    log.write(1, producer_id=7)
    log.write(2, producer_id=8)

    log.end(8, committed=True)
    assert 2 == log.committed
    assert {("t", 0)} == log.pending

    log.end(7, committed=True)
    assert 2 == log.committed
    assert set() == log.pending


def test_last_commit_of_a_partition_within_a_transaction_counts() -> None:
    log = Log()
    log.write(1, producer_id=7)
    log.write(2, producer_id=7)

    log.end(7, committed=True)

    assert 2 == log.committed
    assert set() == log.pending


def test_tombstone_deletes_pending_offsets_of_all_producers() -> None:
    log = Log()
    log.write(1, producer_id=7)
    log.write(2, producer_id=8)
    log.write(5, producer_id=8, partition=1)

    log.write(None)
    assert {("t", 1)} == log.pending
    log.end(7, committed=True)
    log.end(8, committed=True)

    assert log.committed is None
    assert 5 == log.store.committed.of_group("g")["t"][1].offset
    assert set() == log.pending


def test_marker_without_offsets_changes_nothing() -> None:
    """
    The log may have been compacted down to it.
    """
    log = Log()
    log.end(7, committed=True)

    assert not log.store.committed


def test_tombstone_is_needed_for_committed_and_pending_offsets() -> None:
    log = Log()
    log.write(1)
    log.write(1, producer_id=7, partition=1)

    assert log.store.is_known("g", "t", 0)
    assert log.store.is_known("g", "t", 1)
    assert not log.store.is_known("g", "t", 2)
    assert not log.store.is_known("h", "t", 0)


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["commit", "abort", "write", "write", "write", "delete"]),
        st.sampled_from([NO_PRODUCER_ID, 7, 8]),
        st.integers(0, 2),
    ),
    max_size=30,
)


def last_that_count(events: list[tuple[str, int, int]]) -> dict[int, int]:
    """
    For each partition the record that compaction must keep: all before it may go.
    """
    pending: dict[int, list[tuple[int, int]]] = {}
    last: dict[int, int] = {}
    for at, (what, producer_id, partition) in enumerate(events):
        if what == "commit":
            for written_for, written_at in pending.pop(producer_id, []):
                last[written_for] = max(last.get(written_for, -1), written_at)
        elif what == "abort":
            pending.pop(producer_id, None)
        elif what == "write" and producer_id != NO_PRODUCER_ID:
            pending.setdefault(producer_id, []).append((partition, at))
        else:
            last[partition] = at
        if what == "delete":
            for offsets in pending.values():
                offsets[:] = [offset for offset in offsets if offset[0] != partition]
    return last


@given(EVENTS)
def test_compaction_does_not_change_the_committed_offsets(
    events: list[tuple[str, int, int]],
) -> None:
    """
    It takes records that a later one has replaced, and leaves markers alone.
    """
    whole, compacted = empty_store(), empty_store()
    last = last_that_count(events)

    for at, (what, producer_id, partition) in enumerate(events):
        if what in {"commit", "abort"}:
            for store in (whole, compacted):
                store.end_transaction(producer_id, committed=what == "commit")
            continue
        is_tombstone = what == "delete"
        producer = NO_PRODUCER_ID if is_tombstone else producer_id
        made = record(None if is_tombstone else at, partition=partition)
        whole.apply(made, at, producer)
        if at >= last.get(partition, -1):
            compacted.apply(made, at, producer)

    assert sorted(whole.committed) == sorted(compacted.committed)
