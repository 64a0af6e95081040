"""
Offsets of consumer and streams groups: who may commit, fetch and delete them.
"""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.coordination.groups.describing import is_listed, listed
from barnabas.coordination.groups.offsets.fetching import fetch_offsets
from barnabas.coordination.steps import finished
from barnabas.protocol.errors import (
    ErrorCode,
    KafkaError,
    StaleMemberEpoch,
    UnknownMemberId,
    UnsupportedVersion,
)
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from tests.support.attributes import assert_has
from tests.support.consumer_groups import ConsumerCoordination
from tests.support.coordination import GROUP
from tests.support.modern_groups import ModernCoordination
from tests.support.refusals import refusal
from tests.support.streams_groups import StreamsCoordination

EPOCH = 3
"""
The epoch of both members.
"""


@pytest.fixture(params=[ConsumerCoordination, StreamsCoordination])
def c(request: pytest.FixtureRequest) -> ModernCoordination:
    """
    A settled group of the members *a* and *b*.
    """
    kind: type[ModernCoordination] = request.param
    c = kind.of("a", "b")
    assert EPOCH == c.epoch("a") == c.epoch("b")
    return c


def commit(c: ModernCoordination, member_id: str, epoch: int, version: int = 9) -> None:
    c.commit_offsets(
        {("t", 0): 7},
        member_id=member_id,
        generation_id=epoch,
        version=version,
        topic_id=c.topic_id(),
    )


def committed(c: ModernCoordination) -> list[tuple[str, int]]:
    return [(topic, partition) for _, topic, partition, _ in c.state.offsets.committed]


def delete_groups(c: ModernCoordination) -> list[tuple[str, ErrorCode]]:
    changes, answers = c.state.deleting.delete_groups([GROUP])
    c.write(changes)
    return [*answers]


def test_member_commits_with_its_epoch(c: ModernCoordination) -> None:
    commit(c, "a", EPOCH)

    assert [("t", 0)] == committed(c)


STRANGER = "Member {} is not a member of group"


@pytest.mark.parametrize(
    ("sender", "error", "sentence"),
    [
        (("a", 4), StaleMemberEpoch, "Received member epoch 4 is newer than current member epoch"),
        (("", -1), UnknownMemberId, STRANGER.format("")),
        (("", EPOCH), UnknownMemberId, STRANGER.format("")),
        (("x", -1), UnknownMemberId, STRANGER.format("x")),
        (("x", EPOCH), UnknownMemberId, STRANGER.format("x")),
        (("a", EPOCH, 8), UnsupportedVersion, "OffsetCommit version 9 or above must be used by"),
    ],
)
def test_a_commit_of_another_member_epoch_or_version_is_refused(
    c: ModernCoordination, sender: Any, error: type[KafkaError], sentence: str
) -> None:
    kind, said = refusal(lambda: commit(c, *sender))

    assert error is kind
    assert said.startswith(sentence)


def test_anybody_but_former_members_commits_to_an_empty_group(c: ModernCoordination) -> None:
    c.go("a")
    c.go("b")

    commit(c, "", -1)

    assert [("t", 0)] == committed(c)
    assert UnknownMemberId is refusal(lambda: commit(c, "a", EPOCH))[0]


def fetch(c: ModernCoordination, member_id: str | None, epoch: int) -> int:
    request = OffsetFetchRequestGroup(
        group_id=GROUP, member_id=member_id, member_epoch=epoch, topics=None
    )
    answer = finished(fetch_offsets(c.state.groups, c.state.offsets, request, require_stable=False))
    return answer.error_code


@pytest.mark.parametrize(("member_id", "epoch"), [(None, -1), ("a", EPOCH)])
def test_anybody_and_members_at_their_epoch_fetch_offsets(
    c: ModernCoordination, member_id: str | None, epoch: int
) -> None:
    assert ErrorCode.NONE == fetch(c, member_id, epoch)


@pytest.mark.parametrize(
    ("sender", "error", "sentence"),
    [
        (("a", 2), StaleMemberEpoch, "The received member epoch 2 does not match the expected"),
        (("a", 4), StaleMemberEpoch, "The received member epoch 4 does not match the expected"),
        (("x", EPOCH), UnknownMemberId, STRANGER.format("x")),
        (("", -1), UnknownMemberId, STRANGER.format("")),
        ((None, EPOCH), UnknownMemberId, STRANGER.format("")),
    ],
)
def test_unknown_member_or_other_epoch_cannot_fetch_offsets(
    c: ModernCoordination, sender: Any, error: type[KafkaError], sentence: str
) -> None:
    kind, said = refusal(lambda: fetch(c, *sender))

    assert error is kind
    assert said.startswith(sentence)


def test_group_is_deleted_with_its_offsets_once_it_is_empty(c: ModernCoordination) -> None:
    commit(c, "a", EPOCH)
    assert [(GROUP, ErrorCode.NON_EMPTY_GROUP)] == delete_groups(c)
    c.go("a")
    c.go("b")

    assert [(GROUP, ErrorCode.NONE)] == delete_groups(c)

    assert c.modern is None
    assert [] == committed(c)


def test_modern_group_is_listed_by_type_and_state(c: ModernCoordination) -> None:
    line = listed(c.modern)

    assert_has(line, group_id=GROUP, protocol_type=c.kind, group_type=c.kind, group_state="Stable")
    assert is_listed(c.modern, {"stable"}, {c.kind})
    assert not is_listed(c.modern, {"empty"}, ())
    assert not is_listed(c.modern, (), {"classic"})
