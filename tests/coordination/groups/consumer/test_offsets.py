"""
Offsets of consumer groups: who may commit, read and delete them.
"""

from __future__ import annotations

import pytest

from barnabas.coordination.groups.modern.records import ModernRecord
from barnabas.coordination.steps import finished
from barnabas.protocol.errors import (
    ErrorCode,
    GroupIdNotFound,
    IllegalGeneration,
    StaleMemberEpoch,
    UnknownMemberId,
)
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitResponse
from barnabas.storage.producers.entry import SENTINEL
from tests.support.consumer_groups import ConsumerCoordination, classic
from tests.support.coordination import GROUP
from tests.support.group_requests import commit_request, offset_delete_request
from tests.support.modern_groups import number_of
from tests.support.refusals import refusal
from tests.support.transaction_requests import commit_in_transaction_request

MINUTE_MS = 60_000


def moved() -> ConsumerCoordination:
    """
    A group in which *a* has got its partitions at epochs 2 and 3, and is at epoch 3.
    """
    c = ConsumerCoordination.of("a", partitions=1)
    epoch = c.epoch("a")
    c.grow("t", 2)
    c.beat("a", epoch)
    (partitions,) = c.member("a").assigned.values()
    assert {0: 2, 1: 3} == partitions
    return c


def with_classic() -> tuple[ConsumerCoordination, str]:
    """
    A consumer group of a classic member that has a partition, and *new*.
    """
    c = ConsumerCoordination({"t": 1})
    (a,) = classic(c, [0])
    c.enter("new", ["u"])
    return c, a


def committed(c: ConsumerCoordination) -> list[tuple[str, int]]:
    return [(topic, partition) for _, topic, partition, *_ in sorted(c.state.offsets.committed)]


# OffsetCommit


def test_previous_epoch_may_commit_partitions_assigned_then() -> None:
    # KIP-1251: the epoch may change while the request is on its way.
    c = moved()

    c.commit_as("a", 2, partition=0)

    assert [("t", 0)] == committed(c)


def test_epoch_before_the_partition_was_assigned_is_stale() -> None:
    c = moved()

    assert refusal(lambda: c.commit_as("a", 2, partition=1)) == (
        StaleMemberEpoch,
        f"Received member epoch 2 is older than assignment epoch 3 for partition {c.topic_id()}-1.",
    )


def test_partitions_being_revoked_may_be_committed() -> None:
    c = moved()
    c.enter("b", ["t"])
    c.beat("a", 3)
    ((_, revoked),) = c.member("a").pending_revocation.items()
    (partition,) = revoked

    c.commit_as("a", revoked[partition], partition=partition)

    assert [("t", partition)] == committed(c)


def test_old_epoch_may_not_commit_partitions_of_others() -> None:
    c = moved()
    c.enter("b", ["t"])
    c.settle("a", "b")
    ((_, others),) = c.member("b").assigned.items()
    (partition,) = others

    assert refusal(lambda: c.commit_as("a", 3, partition=partition)) == (
        StaleMemberEpoch,
        f"Partition {c.topic_id()}-{partition} is not assigned or pending revocation for member.",
    )


def test_current_epoch_may_commit_any_partition() -> None:
    c = moved()
    c.create("u", 1)

    c.commit_as("a", 3, "u")

    assert [("u", 0)] == committed(c)


def test_metadata_too_long_is_reported_before_the_epoch_is_checked() -> None:
    c = moved()

    answer = c.commit_as("a", 2, partition=1, metadata="x" * 4097)

    assert ErrorCode.OFFSET_METADATA_TOO_LARGE == answer.topics[0].partitions[0].error_code


@pytest.mark.parametrize("version", [8, 9])
def test_commit_of_a_member_to_an_unknown_group_is_refused(version: int) -> None:
    c = ConsumerCoordination({"t": 1})

    expected = GroupIdNotFound if version >= 9 else IllegalGeneration
    assert expected is refusal(lambda: c.commit_as("a", 3, version=version))[0]


def test_classic_member_commits_with_any_version() -> None:
    c, a = with_classic()

    c.commit_as(a, 1, version=2)

    assert [("t", 0)] == committed(c)


def test_classic_member_with_another_generation_is_refused() -> None:
    c = ConsumerCoordination({"t": 1})
    topic_id = c.create("u", 1)
    (a,) = classic(c, [0])
    c.enter("new", ["u"])

    assert (
        IllegalGeneration,
        "Received generation id 2 is newer than current member epoch 1.",
    ) == refusal(lambda: c.commit_as(a, 2))
    assert (
        IllegalGeneration,
        f"Partition {topic_id}-0 is not assigned or pending revocation for member.",
    ) == refusal(lambda: c.commit_as(a, 0, "u"))
    assert IllegalGeneration is refusal(lambda: c.commit_as(a, 0))[0]


def test_members_may_change_while_a_commit_is_validated() -> None:
    c = moved()
    request = commit_request(
        GROUP, "t", {0: 7}, topic_id=c.topic_id(), generation_id_or_member_epoch=3, member_id="a"
    )
    steps = c.state.committing.commit(request, 9, c.now_ms)
    steps.send(None)
    c.go("a")

    with pytest.raises(UnknownMemberId):
        finished(steps)


# TxnOffsetCommit


def commit_in_transaction(
    c: ConsumerCoordination,
    member_id: str = "",
    epoch: int = -1,
    topic: str = "t",
    partition: int = 0,
) -> TxnOffsetCommitResponse:
    offsets = {topic: {partition: 7}}
    request = commit_in_transaction_request(
        "x", (5, 0), GROUP, offsets, generation_id=epoch, member_id=member_id
    )
    _, response = finished(c.state.committing.commit_in_transaction(request, SENTINEL, 5, c.now_ms))
    return response


def test_transaction_may_name_no_member() -> None:
    assert 0 == commit_in_transaction(moved()).topics[0].partitions[0].error_code


@pytest.mark.parametrize(("epoch", "partition"), [(3, 0), (3, 1), (2, 0)])
def test_transaction_of_a_member_must_have_its_epoch(epoch: int, partition: int) -> None:
    answer = commit_in_transaction(moved(), "a", epoch, partition=partition)

    assert 0 == answer.topics[0].partitions[0].error_code


@pytest.mark.parametrize(
    ("epoch", "topic", "partition"), [(4, "t", 0), (2, "t", 1), (2, "missing", 0), (1, "t", 0)]
)
def test_transaction_with_another_epoch_has_an_illegal_generation(
    epoch: int, topic: str, partition: int
) -> None:
    c = moved()

    assert (
        IllegalGeneration
        is refusal(lambda: commit_in_transaction(c, "a", epoch, topic, partition))[0]
    )


def test_transaction_of_an_unknown_member_is_refused() -> None:
    c = moved()

    assert UnknownMemberId is refusal(lambda: commit_in_transaction(c, "b", 3))[0]
    assert UnknownMemberId is refusal(lambda: commit_in_transaction(c, "b"))[0]


# OffsetFetch


def test_classic_member_fetches_with_its_generation() -> None:
    c, a = with_classic()

    c.consumers.validate_fetch(a, 1)
    assert (
        IllegalGeneration,
        "The received generation id 2 does not match the expected member epoch 1.",
    ) == refusal(lambda: c.consumers.validate_fetch(a, 2))


# OffsetDelete, DeleteGroups, expiry


def delete(c: ConsumerCoordination, topic: str) -> int:
    request = offset_delete_request(GROUP, {topic: [0]})
    result, answer = finished(c.state.deleting.delete(request))
    c.write(result)
    return answer.topics[0].partitions[0].error_code


def test_offsets_of_subscribed_topics_cannot_be_deleted() -> None:
    c = moved()
    c.create("r1", 1)
    c.enter("b", [], regex="r.*")
    c.executor.do()

    assert ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC == delete(c, "t")
    assert ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC == delete(c, "r1")


def test_offsets_of_other_topics_can_be_deleted() -> None:
    c = moved()
    c.create("u", 1)
    c.commit_as("a", 3, "u")

    assert ErrorCode.NONE == delete(c, "u")

    assert [] == committed(c)


def test_group_is_deleted_with_its_offsets() -> None:
    c = moved()
    c.commit_as("a", 3)
    c.go("a")

    result, answers = c.state.deleting.delete_groups([GROUP])
    c.write(result)

    assert [(GROUP, ErrorCode.NONE)] == answers
    modern = [number_of(each) for each in c.batches[-1] if isinstance(each, ModernRecord)]
    assert ["-6", "-4", "-3"] == modern
    assert None is c.state.groups.get(GROUP)
    assert [] == committed(c)


def test_offsets_of_unsubscribed_topics_expire_after_each_commit() -> None:
    c = ConsumerCoordination({"t": 1, "u": 1}, offsets_retention_minutes=1)
    epoch = c.enter("a", ["t"]).member_epoch
    c.commit_as("a", epoch)
    c.commit_as("a", epoch, "u")
    c.advance(40_000)
    c.beat("a", epoch)
    c.advance(20_000)

    c.write_all(c.state.deleting.expire(c.now_ms))
    assert [("t", 0)] == committed(c)
    c.go("a")
    c.write_all(c.state.deleting.expire(c.now_ms))

    assert [] == committed(c)
    assert None is c.state.groups.get(GROUP)


def test_empty_group_lives_until_its_offsets_expire() -> None:
    c = ConsumerCoordination.of("a", partitions=1, offsets_retention_minutes=1)
    epoch = c.epoch("a")
    c.commit_as("a", epoch)
    c.go("a")
    c.advance(MINUTE_MS - 1)
    c.write_all(c.state.deleting.expire(c.now_ms))
    assert c.consumers.is_empty

    c.advance(1)
    c.write_all(c.state.deleting.expire(c.now_ms))

    assert None is c.state.groups.get(GROUP)
