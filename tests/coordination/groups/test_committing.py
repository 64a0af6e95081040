from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.coordination.groups.offsets.deleting import DeletedTopic
from barnabas.coordination.groups.offsets.fetching import fetch_offsets
from barnabas.coordination.groups.offsets.offsets import CommittedOffset
from barnabas.coordination.steps import finished
from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.errors import ErrorCode, NonEmptyGroup, UnknownMemberId
from barnabas.protocol.messages.offset_delete import OffsetDeleteResponse
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from tests.support.coordination import GROUP, TOPIC_ID, Coordination, subscription
from tests.support.group_requests import offset_delete_request

OTHER_ID = UUID(int=5)


def fetch(
    c: Coordination,
    topics: dict[str, list[int]] | None,
    *,
    group_id: str = GROUP,
    require_stable: bool = False,
    topic_id: UUID = ZERO_UUID,
) -> OffsetFetchResponseGroup:
    named = None
    if topics is not None:
        named = [
            OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=indexes)
            for name, indexes in topics.items()
        ]
    request = OffsetFetchRequestGroup(group_id=group_id, topics=named)
    return finished(
        fetch_offsets(c.state.groups, c.state.offsets, request, require_stable=require_stable)
    )


def offsets(response: OffsetFetchResponseGroup) -> dict[tuple[str, int], tuple[int, int]]:
    return {
        (topic.name, partition.partition_index): (
            partition.committed_offset,
            partition.error_code,
        )
        for topic in response.topics
        for partition in topic.partitions
    }


def delete(c: Coordination, topics: dict[str, list[int]]) -> OffsetDeleteResponse:
    request = offset_delete_request(GROUP, topics)
    changes, response = finished(c.state.deleting.delete(request))
    c.write(changes)
    return response


def kept(c: Coordination, partition: int) -> CommittedOffset:
    found = c.state.offsets.committed.get(GROUP, "t", partition)
    assert found is not None
    return found


class TestCommit:
    def test_commit_without_a_group_creates_a_simple_group(self) -> None:
        # A simple group has no members and no record of its own.
        c = Coordination()

        c.commit_offsets({("t", 0): 5})

        assert c.group.is_simple
        assert c.group.is_empty
        assert 1 == len(c.log)

    def test_commit_keeps_offset_epoch_metadata_time_and_topic_id(self) -> None:
        c = Coordination()

        c.commit_offsets({("t", 3): 5}, leader_epoch=7, metadata="where I am")

        assert (5, 7, "where I am", c.now_ms, -1, TOPIC_ID, 0) == kept(c, 3)

    def test_null_metadata_is_stored_as_empty(self) -> None:
        c = Coordination()

        c.commit_offsets({("t", 0): 5}, metadata=None)

        assert "" == kept(c, 0).metadata

    def test_commits_of_one_request_are_one_batch(self) -> None:
        c = Coordination()

        c.commit_offsets({("t", 0): 5, ("t", 1): 6, ("u", 0): 7})

        assert [3] == [len(batch) for batch in c.batches]

    @pytest.mark.parametrize(
        ("retention_ms", "difference_ms"),
        [
            pytest.param(1000, 1000, id="a second"),
            pytest.param(2**63 - 1, -(2**63) - 1, id="so long that it has been long ago"),
        ],
    )
    def test_old_client_may_set_the_retention_time(
        self, retention_ms: int, difference_ms: int
    ) -> None:
        # OffsetCommit v2-4, in ms; the sum overflows like a Java long.
        c = Coordination()

        c.commit_offsets({("t", 0): 5}, retention_ms=retention_ms, version=2)

        assert c.now_ms + difference_ms == kept(c, 0).expire_timestamp_ms

    def test_commit_with_every_partition_refused_creates_the_group_too(self) -> None:
        c = Coordination(offset_metadata_max_bytes=10)

        c.commit_offsets({("t", 0): 5}, metadata="m" * 11)

        assert c.group.is_simple
        assert not c.log
        with pytest.raises(UnknownMemberId):
            c.commit_offsets({("t", 0): 5}, member_id="m", generation_id=3)


class TestFetch:
    def test_open_transaction_makes_offsets_unstable(self) -> None:
        # KIP-447.
        c = Coordination()
        c.commit_offsets({("t", 0): 5, ("t", 1): 6})
        record = c.batches[0][0]
        c.state.apply(record, 2, 77)

        assert {("t", 0): (5, 0), ("t", 1): (6, 0)} == offsets(fetch(c, None))
        unstable = {("t", 0): (-1, 88), ("t", 1): (6, 0)}
        assert unstable == offsets(fetch(c, None, require_stable=True))
        assert unstable == offsets(fetch(c, {"t": [0, 1]}, require_stable=True))

        c.state.offsets.end_transaction(77, committed=False)
        assert {("t", 0): (5, 0), ("t", 1): (6, 0)} == offsets(fetch(c, None, require_stable=True))

    def test_fetch_by_topic_id_ignores_offsets_of_an_earlier_topic_of_that_name(self) -> None:
        c = Coordination()
        c.commit_offsets({("t", 0): 5}, topic_id=OTHER_ID)
        c.commit_offsets({("t", 1): 6}, topic_id=ZERO_UUID)

        assert {("t", 0): (-1, 0), ("t", 1): (6, 0)} == offsets(
            fetch(c, {"t": [0, 1]}, topic_id=TOPIC_ID)
        )
        assert {("t", 0): (5, 0), ("t", 1): (6, 0)} == offsets(
            fetch(c, {"t": [0, 1]}, topic_id=OTHER_ID)
        )
        assert {("t", 0): (5, 0), ("t", 1): (6, 0)} == offsets(fetch(c, {"t": [0, 1]}))


class TestDelete:
    def test_offsets_of_subscribed_topics_cannot_be_deleted(self) -> None:
        c = Coordination()
        c.commit_offsets({("t", 0): 5, ("u", 0): 6})
        c.stable(1, offers=[(("range", subscription("t")),)])

        response = delete(c, {"t": [0], "u": [0]})

        assert [86, 0] == [p.error_code for t in response.topics for p in t.partitions]
        assert {("t", 0): (5, 0)} == offsets(fetch(c, None))

    def test_offsets_of_groups_of_another_protocol_type_cannot_be_deleted(self) -> None:
        c = Coordination()
        c.stable(1, protocol_type="connect")

        with pytest.raises(NonEmptyGroup):
            delete(c, {"t": [0]})

    def test_pending_ones_too(self) -> None:
        c = Coordination()
        c.commit_offsets({("t", 0): 5})
        c.commit_in_transaction(c.batches[0][0], 77, partition=1)

        delete(c, {"t": [1]})

        c.state.offsets.end_transaction(77, committed=True)
        assert {("t", 0): (5, 0)} == offsets(fetch(c, None))


class TestDeleteGroups:
    def test_deleting_a_group_deletes_all_of_its_offsets(self) -> None:
        # A tombstone for each offset, pending ones included, then one for the group.
        c = Coordination()
        c.commit_offsets({("t", 0): 5, ("u", 0): 7})
        c.commit_in_transaction(c.batches[0][0], 77, partition=1)

        changes, results = c.state.deleting.delete_groups([GROUP, "nobody"])
        c.write(changes)

        assert [(GROUP, ErrorCode.NONE), ("nobody", ErrorCode.GROUP_ID_NOT_FOUND)] == results
        assert 4 == len(c.batches[-1])
        assert c.state.groups.get(GROUP) is None
        assert not c.state.offsets.committed
        assert not c.state.offsets.pending_partitions(GROUP)
        assert [] == list(c.replayed().groups)


class TestDeletedTopics:
    def test_deleting_a_topic_deletes_its_offsets_in_all_groups(self) -> None:
        # Offsets of a later topic with the same name are kept.
        c = Coordination()
        c.commit_offsets({("t", 0): 5, ("u", 0): 6}, group_id="g1")
        c.commit_offsets({("t", 0): 5}, group_id="g2", topic_id=OTHER_ID)
        c.commit_offsets({("t", 0): 5}, group_id="g3", topic_id=ZERO_UUID)

        c.write_all(c.state.deleting.forget_topics([DeletedTopic("t", TOPIC_ID)]))

        assert {("u", 0): (6, 0)} == offsets(fetch(c, None, group_id="g1"))
        assert {("t", 0): (5, 0)} == offsets(fetch(c, None, group_id="g2"))
        assert {} == offsets(fetch(c, None, group_id="g3"))
        assert 2 == len(c.batches[-1])

    def test_pending_ones_too(self) -> None:
        c = Coordination()
        c.commit_offsets({("t", 0): 5})
        c.commit_in_transaction(c.batches[0][0], 77, partition=1)

        c.write_all(c.state.deleting.forget_topics([DeletedTopic("t", TOPIC_ID)]))
        c.state.offsets.end_transaction(77, committed=True)

        assert {} == offsets(fetch(c, None))
