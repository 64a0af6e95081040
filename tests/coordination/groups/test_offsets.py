from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordination.coordinator_runtime.memory import MemoryBudget
from barnabas.coordination.groups.offsets.offsets import OffsetStore
from barnabas.coordination.groups.records import OffsetRecord
from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.internal_topics.group_records import OffsetCommitValue
from barnabas.protocol.records.batch import NO_PRODUCER_ID


def record(offset: int | None, partition: int) -> OffsetRecord:
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
    return OffsetRecord("g", "t", partition, value)


def empty_store() -> OffsetStore:
    return OffsetStore(MemoryBudget("Offsets", 2**20))


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


class Reference:
    """
    The rules for the offsets of a group: what counts, by partition, is the place of a record.
    """

    def __init__(self) -> None:
        self.committed: dict[int, int] = {}
        self.pending: dict[int, dict[int, int]] = {}

    def apply(self, what: str, producer_id: int, partition: int, at: int) -> None:
        if what == "commit":
            # The later record counts, not the later marker: compaction may remove markers.
            for index, place in self.pending.pop(producer_id, {}).items():
                self.committed[index] = max(place, self.committed.get(index, -1))
        elif what == "abort":
            self.pending.pop(producer_id, None)
        elif what == "delete":
            for places in (self.committed, *self.pending.values()):
                places.pop(partition, None)
        elif producer_id == NO_PRODUCER_ID:
            self.committed[partition] = at
        else:
            self.pending.setdefault(producer_id, {})[partition] = at

    @property
    def unstable(self) -> set[int]:
        return {partition for places in self.pending.values() for partition in places}


def apply(store: OffsetStore, what: str, producer_id: int, partition: int, at: int) -> None:
    if what in {"commit", "abort"}:
        store.end_transaction(producer_id, committed=what == "commit")
    elif what == "delete":
        store.apply(record(None, partition), at, NO_PRODUCER_ID)
    else:
        store.apply(record(at, partition), at, producer_id)


@given(EVENTS)
def test_offsets_follow_the_rules_and_survive_compaction(
    events: list[tuple[str, int, int]],
) -> None:
    # Compaction removes replaced records and keeps markers.
    reference, whole, compacted = Reference(), empty_store(), empty_store()
    last = last_that_count(events)

    for at, (what, producer_id, partition) in enumerate(events):
        reference.apply(what, producer_id, partition, at)
        apply(whole, what, producer_id, partition, at)
        if what in {"commit", "abort"} or at >= last.get(partition, -1):
            apply(compacted, what, producer_id, partition, at)

        committed = {index: known.offset for _, _, index, known in whole.committed}
        assert reference.committed == committed
        assert {("t", index) for index in reference.unstable} == set(whole.pending_partitions("g"))
        assert {*committed, *reference.unstable} == {
            index for index in range(3) if whole.is_known("g", "t", index)
        }
    assert bool(reference.committed) == bool(whole.committed)
    assert not whole.is_known("h", "t", 0)
    assert sorted(whole.committed) == sorted(compacted.committed)
