"""
Offsets of share groups, altered and deleted: what the group notes, and what the coordinator keeps.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from uuid import UUID

import pytest

from barnabas.coordination.share.groups import PartitionsByTopic
from barnabas.coordination.share.keys import SharePartitionKey
from barnabas.coordination.share.offsets import UNKNOWN, ShareOffset, alter, delete, describe
from barnabas.protocol.errors import (
    ErrorCode,
    FencedStateEpoch,
    NonEmptyGroup,
    UnknownTopicOrPartition,
)
from barnabas.server.share.coordinator import ShareCoordinator
from tests.support.server import TestBroker
from tests.support.share_client import ShareClient

pytestmark = pytest.mark.broker(share_coordinator_state_topic_num_partitions="1")

GROUP = "g"


class Groups:
    """
    A group that notes what becomes of its partitions.
    """

    def __init__(self, state_epoch: int = 3) -> None:
        self.state_epoch = state_epoch
        self.notes: list[tuple[str, dict[UUID, list[int]] | list[UUID]]] = []
        self.is_empty = True

    def _note(self, what: str, partitions: PartitionsByTopic) -> None:
        self.notes.append((what, {topic: sorted(those) for topic, those in partitions.items()}))

    def initialized(self, group_id: str) -> PartitionsByTopic:
        return {}

    async def begin_initializing(self, group_id: str, partitions: PartitionsByTopic) -> int:
        if not self.is_empty:
            raise NonEmptyGroup
        self._note("initializing", partitions)
        return self.state_epoch

    async def end_initializing(self, group_id: str, partitions: PartitionsByTopic) -> None:
        self._note("initialized", partitions)

    async def begin_deleting(self, group_id: str, topics: Sequence[UUID]) -> PartitionsByTopic:
        deleting = {topics[0]: [0, 1]}
        self._note("deleting", deleting)
        return deleting

    async def end_deleting(self, group_id: str, topics: Collection[UUID]) -> None:
        self.notes.append(("deleted", list(topics)))


@pytest.fixture
async def share(broker: TestBroker) -> AsyncIterator[ShareClient]:
    client = await ShareClient.of(broker.port, "t", 2)
    yield client
    await client.close()


def coordinator_of(broker: TestBroker) -> ShareCoordinator:
    return broker.inside.shares


async def test_altered_share_offsets_initialize_a_state_at_the_group_epoch(
    broker: TestBroker, share: ShareClient
) -> None:
    groups, topic = Groups(), share.topic_id

    assert {} == await alter(GROUP, {topic: {0: 5, 1: 7}}, groups, coordinator_of(broker))

    assert [("initializing", {topic: [0, 1]}), ("initialized", {topic: [0, 1]})] == groups.notes
    state = await share.read(GROUP, -1, partition=1)
    assert (7, 3) == (state.start_offset, state.state_epoch)


async def test_topic_without_known_partitions_stays_initializing(
    broker: TestBroker, share: ShareClient
) -> None:
    groups, topic, other = Groups(), share.topic_id, UUID(int=8)

    await alter(GROUP, {other: {}}, groups, coordinator_of(broker))
    await alter(GROUP, {topic: {0: 5}, other: {}}, groups, coordinator_of(broker))

    begun = ("initializing", {topic: [0], other: []})
    assert [("initializing", {other: []}), begun, ("initialized", {topic: [0]})] == groups.notes


async def test_failed_partition_is_not_initialized(broker: TestBroker, share: ShareClient) -> None:
    await share.initialize(GROUP, 0, state_epoch=9)
    groups, topic = Groups(), share.topic_id

    failed = await alter(GROUP, {topic: {0: 5, 1: 7}}, groups, coordinator_of(broker))

    assert isinstance(failed[topic][0], FencedStateEpoch)
    assert [0] == [*failed[topic]]
    assert [("initializing", {topic: [0, 1]})] == groups.notes


async def test_share_offsets_of_a_group_with_members_cannot_be_changed(
    broker: TestBroker, share: ShareClient
) -> None:
    groups = Groups()
    groups.is_empty = False

    with pytest.raises(NonEmptyGroup):
        await alter(GROUP, {share.topic_id: {0: 5}}, groups, coordinator_of(broker))
    assert (await share.read(GROUP, -1)).error_code == ErrorCode.INVALID_REQUEST


async def test_deleted_share_offsets_are_forgotten(broker: TestBroker, share: ShareClient) -> None:
    await share.initialize(GROUP, 3)
    groups, topic, other = Groups(), share.topic_id, UUID(int=8)

    results = await delete(GROUP, [topic, other], groups, coordinator_of(broker))

    assert results[topic] is None
    assert isinstance(results[other], UnknownTopicOrPartition)
    assert [("deleting", {topic: [0, 1]}), ("deleted", [topic])] == groups.notes
    assert UNKNOWN == (await share.summary(GROUP)).start_offset


async def test_share_lag_counts_unfinished_records(broker: TestBroker, share: ShareClient) -> None:
    await share.produce(*[[b"v"]] * 10)
    await share.initialize(GROUP, 2)
    await share.write(GROUP, [(4, 6, 2, 1)], start_offset=4, delivery_complete_count=3)
    key = SharePartitionKey(GROUP, share.topic_id, 0)

    def high_watermark(topic_id: UUID, index: int) -> int:
        return broker.inside.partitions.expect_by_id(topic_id, index).log.high_watermark

    found = await describe(key, coordinator_of(broker), high_watermark)
    other = SharePartitionKey("other", share.topic_id, 0)
    nothing = await describe(other, coordinator_of(broker), high_watermark)

    assert ShareOffset(4, 0, 3) == found
    assert ShareOffset(UNKNOWN, 0, UNKNOWN) == nothing
