"""
Offsets of consumer groups: who may commit, read and delete them.
"""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import (
    ErrorCode,
    GroupIdNotFound,
    IllegalGeneration,
    KafkaError,
    NonEmptyGroup,
    StaleMemberEpoch,
    UnknownMemberId,
    UnsupportedVersion,
)
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitResponse
from barnabas.server.groups.modern.records import ModernRecord
from barnabas.server.groups.offsets.fetching import fetch_offsets
from barnabas.server.scheduling.turns import finished
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
    c = ConsumerCoordination()
    c.create("t", 1)
    epoch = c.enter("a", ["t"]).member_epoch
    c.grow("t", 2)
    c.beat("a", epoch)
    (partitions,) = c.member("a").assigned.values()
    assert {0: 2, 1: 3} == partitions
    return c


def committed(c: ConsumerCoordination) -> list[tuple[str, int]]:
    return [(topic, partition) for _, topic, partition, *_ in sorted(c.state.offsets.committed)]


# OffsetCommit


def test_member_commits_with_its_epoch() -> None:
    c = moved()

    answer = c.commit_as("a", 3)

    assert 0 == answer.topics[0].partitions[0].error_code
    assert [("t", 0)] == committed(c)


def test_previous_epoch_may_commit_partitions_assigned_then() -> None:
    """
    KIP-1251: the epoch may have changed while the request was on its way.
    """
    c = moved()

    c.commit_as("a", 2, partition=0)

    assert [("t", 0)] == committed(c)


def test_epoch_before_the_partition_was_assigned_is_stale() -> None:
    c = moved()
    topic = c.topics.get("t")
    assert topic is not None

    assert refusal(lambda: c.commit_as("a", 2, partition=1)) == (
        StaleMemberEpoch,
        f"Received member epoch 2 is older than assignment epoch 3 for partition {topic.id}-1.",
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
    topic = c.topics.get("t")
    assert topic is not None
    c.enter("b", ["t"])
    c.settle("a", "b")
    ((_, others),) = c.member("b").assigned.items()
    (partition,) = others

    assert refusal(lambda: c.commit_as("a", 3, partition=partition)) == (
        StaleMemberEpoch,
        f"Partition {topic.id}-{partition} is not assigned or pending revocation for member.",
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


@pytest.mark.parametrize(
    ("member_id", "epoch", "version", "error", "sentence"),
    [
        ("a", 4, 9, StaleMemberEpoch, "Received member epoch 4 is newer than current member epoch"),
        *(
            (stranger, epoch, 9, UnknownMemberId, f"Member {stranger} is not a member of group")
            for stranger in ("", "b")
            for epoch in (-1, 3)
        ),
        ("a", 3, 8, UnsupportedVersion, "OffsetCommit version 9 or above must be used by members"),
    ],
)
def test_a_commit_of_another_member_epoch_or_version_is_refused(
    member_id: str, epoch: int, version: int, error: type[KafkaError], sentence: str
) -> None:
    c = moved()

    kind, said = refusal(lambda: c.commit_as(member_id, epoch, version=version))

    assert error is kind
    assert said.startswith(sentence)


def test_anybody_commits_to_an_empty_group() -> None:
    c = moved()
    c.go("a")

    c.commit_as("", -1)

    assert [("t", 0)] == committed(c)


def test_member_that_has_left_cannot_commit() -> None:
    c = moved()
    c.go("a")

    assert UnknownMemberId is refusal(lambda: c.commit_as("a", 3))[0]


@pytest.mark.parametrize("version", [8, 9])
def test_commit_of_a_member_to_an_unknown_group_is_refused(version: int) -> None:
    c = ConsumerCoordination()
    c.create("t", 1)

    expected = GroupIdNotFound if version >= 9 else IllegalGeneration
    assert expected is refusal(lambda: c.commit_as("a", 3, version=version))[0]


def test_classic_member_commits_with_any_version() -> None:
    c = ConsumerCoordination()
    c.create("t", 1)
    (a,) = classic(c, [0])
    c.enter("new", ["u"])

    c.commit_as(a, 1, version=2)

    assert [("t", 0)] == committed(c)


def test_classic_member_with_another_generation_is_refused() -> None:
    c = ConsumerCoordination()
    c.create("t", 1)
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
    request_steps = c.state.committing.commit(offset_request(c), 9, c.now_ms)
    next(request_steps)
    c.go("a")

    with pytest.raises(UnknownMemberId):
        finished(request_steps)


def offset_request(c: ConsumerCoordination) -> OffsetCommitRequest:
    topic = c.topics.get("t")
    assert topic is not None
    return commit_request(
        GROUP, "t", {0: 7}, topic_id=topic.id, generation_id_or_member_epoch=3, member_id="a"
    )


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


def fetch(c: ConsumerCoordination, member_id: str | None, epoch: int) -> int:
    request = OffsetFetchRequestGroup(
        group_id=GROUP, member_id=member_id, member_epoch=epoch, topics=None
    )
    answer = finished(fetch_offsets(c.state.groups, c.state.offsets, request, require_stable=False))
    return answer.error_code


def test_anybody_fetches_offsets() -> None:
    assert ErrorCode.NONE == fetch(moved(), None, -1)


def test_member_fetches_offsets_with_its_epoch() -> None:
    assert ErrorCode.NONE == fetch(moved(), "a", 3)


@pytest.mark.parametrize(
    ("member_id", "epoch", "refused"),
    [
        (
            "a",
            2,
            (
                StaleMemberEpoch,
                "The received member epoch 2 does not match the expected member epoch 3.",
            ),
        ),
        (
            "a",
            4,
            (
                StaleMemberEpoch,
                "The received member epoch 4 does not match the expected member epoch 3.",
            ),
        ),
        ("b", 3, (UnknownMemberId, f"Member b is not a member of group {GROUP}.")),
        ("", -1, (UnknownMemberId, f"Member  is not a member of group {GROUP}.")),
    ],
)
def test_unknown_member_or_other_epoch_cannot_fetch_offsets(
    member_id: str, epoch: int, refused: tuple[type[KafkaError], str]
) -> None:
    c = moved()

    assert refused == refusal(lambda: c.consumers.validate_fetch(member_id, epoch))
    with pytest.raises(refused[0]):
        fetch(c, member_id, epoch)


def test_classic_member_fetches_with_its_generation() -> None:
    c = ConsumerCoordination()
    c.create("t", 1)
    (a,) = classic(c, [0])
    c.enter("new", ["u"])

    assert ErrorCode.NONE == fetch(c, a, 1)
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


def test_group_with_members_cannot_be_deleted() -> None:
    c = moved()

    assert NonEmptyGroup is refusal(c.consumers.validate_delete)[0]


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
    c = ConsumerCoordination(offsets_retention_minutes=1)
    c.create("t", 1)
    c.create("u", 1)
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
    c = ConsumerCoordination(offsets_retention_minutes=1)
    c.create("t", 1)
    epoch = c.enter("a", ["t"]).member_epoch
    c.commit_as("a", epoch)
    c.go("a")
    c.advance(MINUTE_MS - 1)
    c.write_all(c.state.deleting.expire(c.now_ms))
    assert c.consumers.is_empty

    c.advance(1)
    c.write_all(c.state.deleting.expire(c.now_ms))

    assert None is c.state.groups.get(GROUP)
