from __future__ import annotations

import sys
from typing import Any

import pytest

from barnabas.protocol.codec.codec import encode
from barnabas.protocol.errors import (
    ErrorCode,
    GroupIdNotFound,
    KafkaError,
    NonEmptyGroup,
    StaleMemberEpoch,
    UnknownMemberId,
    UnsupportedVersion,
)
from barnabas.protocol.internal_topics.group_records import consumer, share, streams
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from barnabas.server.groups.consumer.group import ConsumerGroup
from barnabas.server.groups.describing import describe, listed
from barnabas.server.groups.group_type import GroupType
from barnabas.server.groups.modern.records import ModernRecord, Role, encode_key
from barnabas.server.groups.offsets.fetching import fetch_offsets
from barnabas.server.groups.records import decode_record
from barnabas.server.groups.share.group import ShareGroup
from barnabas.server.groups.streams.group import StreamsGroup
from barnabas.server.scheduling.turns import finished
from tests.support.coordination import GROUP, Coordination
from tests.support.some import some

SESSION_TIMEOUT_MS = 45_000
TYPES = [GroupType.STREAMS]


Stored = tuple[bytes, bytes | None]


def stored(schema: type[Any], *strings: str, **fields: Any) -> Stored:
    """
    The record with that key and the value that belongs to it.
    """
    encoded = b"".join(len(s).to_bytes(2, "big") + s.encode() for s in strings)
    key = schema.api.key.to_bytes(2, "big") + encoded
    module = sys.modules[schema.__module__]
    value_schema = getattr(module, schema.__name__.removesuffix("Key") + "Value")
    return key, b"\0\0" + encode(value_schema(**fields), 0)


def records(
    group_type: GroupType,
    *members: str,
    epoch: int = 3,
    target: int = 3,
    member_epoch: int = 3,
    member_state: int = 0,
    topics: tuple[str, ...] = ("t",),
) -> list[Stored]:
    """
    What Kafka would have written of a group with these members.
    """
    client = {"rack_id": None, "client_id": "c", "client_host": "/h"}
    about: dict[str, Any] = {**client, "subscribed_topic_names": list(topics)}
    epochs = {"member_epoch": member_epoch, "previous_member_epoch": 0, "state": member_state}
    match group_type:
        case GroupType.CONSUMER:
            target_key = consumer.ConsumerGroupTargetAssignmentMetadataKey
            regex_key = consumer.ConsumerGroupRegularExpressionKey
            found = [
                stored(consumer.ConsumerGroupMetadataKey, GROUP, epoch=epoch, metadata_hash=99),
                stored(target_key, GROUP, assignment_epoch=target),
                stored(regex_key, GROUP, "r.*", topics=["r1"], version=1, timestamp=1),
            ]
            more = ("instance_id", "subscribed_topic_regex", "server_assignor")
            about |= dict.fromkeys((*more, "classic_member_metadata"))
            nothing: dict[str, Any] = {
                "assigned_partitions": [],
                "partitions_pending_revocation": [],
            }
            for m in members:
                found += [
                    stored(consumer.ConsumerGroupMemberMetadataKey, GROUP, m, **about),
                    stored(
                        consumer.ConsumerGroupTargetAssignmentMemberKey,
                        GROUP,
                        m,
                        topic_partitions=[],
                    ),
                    stored(
                        consumer.ConsumerGroupCurrentMemberAssignmentKey,
                        GROUP,
                        m,
                        **epochs,
                        **nothing,
                    ),
                ]
            return found
        case GroupType.SHARE:
            member_key = share.ShareGroupMemberMetadataKey
            return [
                stored(share.ShareGroupMetadataKey, GROUP, epoch=epoch, metadata_hash=99),
                *(stored(member_key, GROUP, m, **about) for m in members),
            ]
        case _:
            tasks: dict[str, Any] = {
                f"{role}_tasks{suffix}": []
                for role in ("active", "standby", "warmup")
                for suffix in ("", "_pending_revocation")
            }
            facts = {"epoch": epoch, "metadata_hash": 99, "validated_topology_epoch": 1}
            assigned_key = streams.StreamsGroupCurrentMemberAssignmentKey
            return [
                stored(streams.StreamsGroupMetadataKey, GROUP, **facts),
                *(stored(assigned_key, GROUP, m, **epochs, **tasks) for m in members),
            ]


def coordination(group_type: GroupType, *members: str, **facts: Any) -> Coordination:
    """
    A coordinator that has found such a group in its log.
    """
    c = Coordination()
    c.log.extend(records(group_type, *members, **facts))
    c.restart()
    return c


def the_group(c: Coordination) -> ShareGroup | ConsumerGroup | StreamsGroup:
    group = c.state.groups.get(GROUP)
    assert isinstance(group, ShareGroup | ConsumerGroup | StreamsGroup)
    return group


@pytest.mark.parametrize("group_type", TYPES)
def test_modern_group_is_listed_with_its_type(group_type: GroupType) -> None:
    c = coordination(group_type, "m")

    line = listed(the_group(c))

    assert (GROUP, group_type.value, group_type.value) == (
        line.group_id,
        line.protocol_type,
        line.group_type,
    )


@pytest.mark.parametrize(
    ("group_type", "members", "facts", "expected"),
    [
        (GroupType.CONSUMER, [], {}, "Empty"),
        (GroupType.CONSUMER, ["m"], {}, "Stable"),
        (GroupType.CONSUMER, ["m"], {"epoch": 4}, "Assigning"),
        (GroupType.CONSUMER, ["m"], {"member_epoch": 2}, "Reconciling"),
        (GroupType.CONSUMER, ["m"], {"member_state": 1}, "Reconciling"),
        (GroupType.STREAMS, [], {}, "Empty"),
        (GroupType.STREAMS, ["m"], {}, "NotReady"),
    ],
)
def test_state_of_a_modern_group_is_that_of_kafka(
    group_type: GroupType, members: list[str], facts: dict[str, int], expected: str
) -> None:
    assert expected == the_group(coordination(group_type, *members, **facts)).state_name


@pytest.mark.parametrize("group_type", TYPES)
def test_modern_group_does_not_exist_for_classic_requests(group_type: GroupType) -> None:
    c = coordination(group_type, "m")

    assert ErrorCode.INCONSISTENT_GROUP_PROTOCOL == c.join().now.error_code
    assert ErrorCode.UNKNOWN_MEMBER_ID == c.sync("m", 3).now.error_code
    with pytest.raises(UnknownMemberId):
        c.heartbeat("m", 3)
    with pytest.raises(UnknownMemberId):
        c.leave("m")
    described = describe(c.state.groups, GROUP, 6)
    assert ("Dead", 69) == (described.group_state, described.error_code)
    assert f"Group {GROUP} is not a classic group." == described.error_message
    assert 0 == describe(c.state.groups, GROUP, 5).error_code


@pytest.mark.parametrize("group_type", [GroupType.CONSUMER, GroupType.STREAMS])
def test_empty_modern_group_can_become_classic(group_type: GroupType) -> None:
    """
    Everything is deleted except the offsets.
    """
    c = coordination(group_type)
    c.commit_offsets({("t", 0): 5})

    join = c.join(version=3)
    c.advance(1)

    assert 1 == join.now.generation_id
    tombstones = [r for r in c.batches[-1] if isinstance(r, ModernRecord)]
    assert {encode_key(r.key) for r in tombstones} >= {key for key, _ in records(group_type)}
    assert all(r.value is None for r in tombstones)
    again = c.replayed()
    assert again.groups.get_classic(GROUP) is not None
    assert 1 == len(list(again.offsets.committed))


def test_empty_share_group_cannot_become_classic() -> None:
    """
    It has a state of its own elsewhere.
    """
    c = coordination(GroupType.SHARE)

    assert ErrorCode.INCONSISTENT_GROUP_PROTOCOL == c.join().now.error_code


def test_failed_write_keeps_the_modern_group() -> None:
    """
    The join is refused.
    """
    c = coordination(GroupType.CONSUMER)
    c.append_error = ErrorCode.KAFKA_STORAGE_ERROR

    assert ErrorCode.NOT_COORDINATOR == c.join(version=3).now.error_code
    assert the_group(c).is_empty


def test_known_member_id_does_not_convert_an_empty_modern_group() -> None:
    """
    Whoever has one has to start anew first.
    """
    c = coordination(GroupType.CONSUMER)

    assert ErrorCode.UNKNOWN_MEMBER_ID == c.join("m").now.error_code
    assert the_group(c).is_empty


COMMITS: list[tuple[GroupType, list[str], dict[str, Any], type[KafkaError] | None]] = [
    (GroupType.CONSUMER, [], {}, None),
    (GroupType.CONSUMER, ["m"], {}, UnknownMemberId),
    (GroupType.CONSUMER, ["m"], {"member_id": "m", "generation_id": 3}, None),
    (GroupType.CONSUMER, ["m"], {"member_id": "m", "generation_id": 2}, StaleMemberEpoch),
    (GroupType.CONSUMER, ["m"], {"member_id": "m", "generation_id": 4}, StaleMemberEpoch),
    (GroupType.CONSUMER, ["m"], {"member_id": "x", "generation_id": 3}, UnknownMemberId),
    (
        GroupType.CONSUMER,
        ["m"],
        {"member_id": "m", "generation_id": 3, "version": 8},
        UnsupportedVersion,
    ),
    (GroupType.STREAMS, ["m"], {"member_id": "m", "generation_id": 3}, None),
    (GroupType.SHARE, [], {}, GroupIdNotFound),
]


@pytest.mark.parametrize(("group_type", "members", "options", "error"), COMMITS)
def test_members_commit_at_their_epoch_and_anybody_to_an_empty_group(
    group_type: GroupType,
    members: list[str],
    options: dict[str, Any],
    error: type[KafkaError] | None,
) -> None:
    c = coordination(group_type, *members)

    if error is None:
        c.commit_offsets({("t", 0): 5}, **options)
        assert 1 == len(list(c.state.offsets.committed))
    else:
        with pytest.raises(error):
            c.commit_offsets({("t", 0): 5}, **options)


@pytest.mark.parametrize(
    ("member_id", "epoch", "error"),
    [
        (None, -1, None),
        ("m", 3, None),
        ("m", 2, StaleMemberEpoch),
        ("x", 3, UnknownMemberId),
        (None, 3, UnknownMemberId),
    ],
)
def test_anybody_fetches_offsets_without_a_member_id(
    member_id: str | None, epoch: int, error: type[KafkaError] | None
) -> None:
    """
    Anybody, but who claims to be a member must be one.
    """
    c = coordination(GroupType.CONSUMER, "m")
    request = OffsetFetchRequestGroup(
        group_id=GROUP, member_id=member_id, member_epoch=epoch, topics=[]
    )

    steps = fetch_offsets(c.state.groups, c.state.offsets, request, require_stable=False)
    if error is None:
        assert 0 == finished(steps).error_code
    else:
        with pytest.raises(error):
            finished(steps)


@pytest.mark.parametrize("group_type", TYPES)
def test_modern_group_can_be_deleted_only_when_empty(group_type: GroupType) -> None:
    c = coordination(group_type, "m")
    assert [(GROUP, ErrorCode.NON_EMPTY_GROUP)] == c.state.deleting.delete_groups([GROUP])[1]

    c = coordination(group_type)
    changes, results = c.state.deleting.delete_groups([GROUP])
    c.write(changes)

    assert [(GROUP, ErrorCode.NONE)] == results
    assert c.state.groups.get(GROUP) is None
    live = {k for k, v in dict(c.log).items() if v is not None}
    assert set() == live


def test_modern_group_records_are_deleted_in_kafkas_order() -> None:
    """
    Kafka refuses to load a log in which a member is deleted before its assignment.
    """
    c = coordination(GroupType.CONSUMER, "m", "n")

    order = [record.role for record in the_group(c).tombstones()]

    expected = [
        Role.CURRENT,
        Role.TARGET,
        Role.TARGET_EPOCH,
        Role.MEMBER,
        Role.REGEX,
        Role.OTHER,
        Role.EPOCH,
    ]
    assert expected == list(dict.fromkeys(order))
    assert all(record.value is None for record in some(the_group(c).tombstones()))


@pytest.mark.parametrize("group_type", TYPES)
def test_members_expire_after_a_restart_without_their_protocol(group_type: GroupType) -> None:
    """
    They cannot send heartbeats here. Then the group is empty, in its next epoch.
    """
    c = coordination(group_type, "m", "n")

    c.advance(SESSION_TIMEOUT_MS - 1)
    assert ["m", "n"] == list(the_group(c).members)
    c.advance(1)

    assert the_group(c).is_empty
    again = c.replayed().groups.get(GROUP)
    assert again is not None
    assert again.is_empty
    epochs = [
        r.value
        for batch in c.batches
        for r in batch
        if isinstance(r, ModernRecord) and r.role is Role.EPOCH
    ]
    # A streams group loses one member after the other, and keeps the hash of its topology.
    expected = [(4, 99), (5, 99)] if group_type is GroupType.STREAMS else [(4, 0)]
    assert expected == [(value.epoch, value.metadata_hash) for value in epochs]


def test_offsets_of_subscribed_topics_do_not_expire() -> None:
    c = coordination(GroupType.CONSUMER, "m", topics=("t",))
    c.commit_offsets({("t", 0): 1, ("r1", 0): 1, ("u", 0): 1}, member_id="m", generation_id=3)

    (changes,) = c.state.deleting.expire(c.now_ms + 8 * 24 * 3_600_000)

    assert ["u"] == [record.topic for record in changes.records]  # type: ignore[union-attr]  # all are of offsets


def test_share_groups_do_not_expire() -> None:
    c = coordination(GroupType.SHARE)

    (changes,) = c.state.deleting.expire(c.now_ms + 8 * 24 * 3_600_000)

    assert [] == list(changes.records)


def test_offsets_may_be_loaded_before_their_group() -> None:
    """
    In a compacted log: the simple group created for them is replaced.
    """
    c = Coordination()
    c.commit_offsets({("t", 0): 1})
    c.log.extend(records(GroupType.CONSUMER, "m"))
    c.restart()

    assert ["m"] == list(the_group(c).members)
    assert 1 == len(list(c.state.offsets.committed))


def test_leftover_tombstones_change_nothing() -> None:
    """
    Of a group that is no more, or is a classic one by now.
    """
    c = Coordination()
    c.stable(1)
    c.log.extend((k, None) for k, _ in records(GroupType.CONSUMER, "m"))
    c.restart()

    assert 1 == len(c.group.members)


def test_two_groups_of_one_id_are_refused() -> None:
    """
    No writer makes such a log; guessing which one is meant could lose either.
    """
    c = Coordination()
    c.stable(1)
    c.log.extend(records(GroupType.CONSUMER, "m"))

    with pytest.raises(ValueError, match="ModernRecord"):
        c.restart()


def test_every_group_record_type_has_a_role() -> None:
    """
    Those that Kafka 4.3.1 knows, save the classic ones.
    """
    types = [3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23]
    records = [decode_record(t.to_bytes(2, "big") + b"\0\1g\0\1m", None) for t in types]

    assert types == [r.key.api.key for r in records if isinstance(r, ModernRecord)]
    assert set(Role) == {record.role for record in records if isinstance(record, ModernRecord)}


def test_offsets_of_a_modern_group_with_members_can_be_deleted_but_not_the_group() -> None:
    group = the_group(coordination(GroupType.CONSUMER, "m"))

    group.validate_offset_delete()
    with pytest.raises(NonEmptyGroup):
        group.validate_delete()
