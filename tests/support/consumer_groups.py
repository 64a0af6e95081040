"""
A partition of the group coordinator whose groups use the consumer protocol (KIP-848).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias
from uuid import UUID

from barnabas.coordination.groups.caller import Caller
from barnabas.coordination.groups.classic.subscriptions import assignment_bytes
from barnabas.coordination.groups.consumer.group import ConsumerGroup
from barnabas.coordination.groups.consumer.heartbeats import check_heartbeat
from barnabas.coordination.groups.consumer.member import ConsumerGroupMember
from barnabas.coordination.groups.modern.records import ModernRecord
from barnabas.coordination.groups.shard_state import ShardState
from barnabas.protocol.codec.codec import encode
from barnabas.protocol.consumer_protocol import ConsumerProtocolSubscription
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.protocol.messages.offset_commit import OffsetCommitResponse
from tests.support.build import build
from tests.support.coordination import GROUP, Offer
from tests.support.modern_groups import ModernCoordination

Owned: TypeAlias = Mapping[UUID, Iterable[int]]

REBALANCE_TIMEOUT_MS = 60_000
ROUND_MS = 6_000
"""
The longest round of joins of a new group.
"""
CALLER = Caller(1, "client", "/127.0.0.1")


class ConsumerCoordination(ModernCoordination):
    """
    A coordinator that targets are computed by at once, unless ``interval_ms`` says otherwise.
    """

    kind = "consumer"

    def __init__(
        self, topics: Mapping[str, int] | None = None, *, interval_ms: int = 0, **options: Any
    ) -> None:
        super().__init__(topics, **options)
        self.set_config(consumer_assignment_interval_ms=interval_ms)
        self.state.loaded(self.now_ms)

    # Requests

    def beat(
        self,
        member_id: str,
        epoch: int,
        *,
        topics: Iterable[str] | None = None,
        regex: str | None = None,
        owned: Owned | None = None,
        timeout_ms: int = -1,
        instance_id: str | None = None,
        rack_id: str | None = None,
        assignor: str | None = None,
        group_id: str = GROUP,
        caller: Caller = CALLER,
    ) -> ConsumerGroupHeartbeatResponse:
        """
        Send a heartbeat; a refused one raises the error.
        """
        request = build(
            ConsumerGroupHeartbeatRequest,
            group_id=group_id,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=instance_id,
            rack_id=rack_id,
            rebalance_timeout_ms=timeout_ms,
            subscribed_topic_names=topics,
            subscribed_topic_regex=regex,
            server_assignor=assignor,
            topic_partitions=None
            if owned is None
            else [{"topic_id": each, "partitions": indexes} for each, indexes in owned.items()],
        )
        return self.send(request, caller)

    def send(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller = CALLER
    ) -> ConsumerGroupHeartbeatResponse:
        check_heartbeat(request, caller.version, self.options.group_consumer_assignors)
        heartbeats = self.state.consumers.heartbeats
        result, response = heartbeats.heartbeat(request, caller, self.now_ms)
        self.write(result)
        return response

    def enter(
        self, member_id: str, topics: Iterable[str] | None = (), **facts: Any
    ) -> ConsumerGroupHeartbeatResponse:
        """
        Join with epoch 0 and a full request.
        """
        given: dict[str, Any] = {"timeout_ms": REBALANCE_TIMEOUT_MS, "owned": {}}
        return self.beat(member_id, 0, topics=topics, **given | facts)

    def go(self, member_id: str, epoch: int = -1, **facts: Any) -> ConsumerGroupHeartbeatResponse:
        """
        Leave.
        """
        return self.beat(member_id, epoch, **facts)

    def arrive(self, member_id: str) -> ConsumerGroupHeartbeatResponse:
        return self.enter(member_id, ["t"])

    def report(self, member_id: str) -> ConsumerGroupHeartbeatResponse:
        """
        A heartbeat of a member that has done as it was told.
        """
        member = self.member(member_id)
        return self.beat(member_id, member.member_epoch, owned=member.assigned)

    def commit_as(
        self,
        member_id: str,
        epoch: int,
        topic: str = "t",
        partition: int = 0,
        *,
        version: int = 9,
        metadata: str | None = "",
    ) -> OffsetCommitResponse:
        """
        Commit the offset 7 of a topic that exists.
        """
        return self.commit_offsets(
            {(topic, partition): 7},
            member_id=member_id,
            generation_id=epoch,
            version=version,
            metadata=metadata,
            topic_id=self.topic_id(topic),
        )

    # What came of it

    @property
    def consumers(self) -> ConsumerGroup:
        group = self.state.groups.get(GROUP)
        assert isinstance(group, ConsumerGroup), group
        return group

    def member(self, member_id: str) -> ConsumerGroupMember:
        return self.consumers.members[member_id]

    def assigned(self, member_id: str) -> dict[UUID, list[int]]:
        return sorted_partitions(self.member(member_id).assigned)

    def target(self, member_id: str) -> dict[UUID, list[int]]:
        return sorted_partitions(self.consumers.target_of(member_id))

    def last_value(self, number: int, member_id: str | None = None) -> Any:
        """
        The value of the only record of that number in the last batch, or of that and a member.
        """
        (value,) = [
            record.value
            for record in self.batches[-1]
            if isinstance(record, ModernRecord)
            and record.key.api.key == number
            and record.value is not None
            and member_id in {None, record.member_id}
        ]
        return value


def sorted_partitions(assigned: Mapping[UUID, Iterable[int]]) -> dict[UUID, list[int]]:
    """
    Partitions that can be compared.
    """
    return {topic_id: sorted(partitions) for topic_id, partitions in assigned.items() if partitions}


def told(response: ConsumerGroupHeartbeatResponse) -> dict[UUID, list[int]] | None:
    """
    The partitions in an answer; None if it has no assignment.
    """
    if response.assignment is None:
        return None
    return {each.topic_id: sorted(each.partitions) for each in response.assignment.topic_partitions}


def consumer_facts(state: ShardState) -> dict[str, dict[str, Any]]:
    """
    All of the consumer groups of a state that must survive a restart.
    """
    return {
        group.group_id: {
            "epochs": (
                group.group_epoch,
                group.metadata_hash,
                group.assignment_epoch,
                group.assignment_timestamp_ms,
            ),
            "members": dict(group.members),
            "static": dict(group.static_members),
            "targets": {m: sorted_partitions(t) for m, t in group.targets.items()},
            "owners": {t: dict(owners) for t, owners in group.owners.items()},
            "names": dict(group.subscriptions.names),
            "regexes": dict(group.subscriptions.regexes),
            "resolved": dict(group.subscriptions.resolved),
            "votes": dict(group.assignor_votes),
            "classic": dict(group.classic_protocols),
            "state": group.state_name,
        }
        for group in state.groups
        if isinstance(group, ConsumerGroup)
    }


def check_owners(group: ConsumerGroup) -> None:
    """
    No partition has two owners, and each owner is known as such.
    """
    found: dict[tuple[UUID, int], str] = {}
    for member in group.members.values():
        for assigned in (member.assigned, member.pending_revocation):
            for topic_id, partitions in assigned.items():
                assert partitions, f"{member} has an empty topic"
                for partition in partitions:
                    other = found.setdefault((topic_id, partition), member.member_id)
                    assert other == member.member_id, f"{partition} is {other}'s, and {member}'s"
    owners = {
        (topic_id, partition): owner
        for topic_id, partitions in group.owners.items()
        for partition, owner in partitions.items()
    }
    assert found == owners


def consumer_metadata(
    topics: Iterable[str],
    owned: Mapping[str, Iterable[int]] | None = None,
    *,
    version: int = 3,
    rack_id: str | None = None,
) -> bytes:
    """
    The metadata of a classic consumer's protocol.
    """
    message = build(
        ConsumerProtocolSubscription,
        topics=topics,
        user_data=None,
        owned_partitions=[
            {"topic": topic, "partitions": partitions}
            for topic, partitions in (owned or {}).items()
        ],
        rack_id=rack_id,
    )
    return version.to_bytes(2, "big") + encode(message, version)


def offer(*topics: str, **facts: Any) -> Offer:
    """
    The protocols of a classic consumer.
    """
    metadata = consumer_metadata(topics, **facts)
    return (("range", metadata), ("cooperative-sticky", metadata))


def classic(
    c: ConsumerCoordination, *assigned: list[int], version: int = 3, **options: Any
) -> list[str]:
    """
    A stable classic group whose members have these partitions of *t*, in the order of the ids.
    """
    joins = [c.new_member(protocols=offer("t", version=version), **options) for _ in assigned]
    c.advance(ROUND_MS)
    generation = joins[0][1].now.generation_id
    leader = joins[0][1].now.leader
    ids = [member_id for member_id, _ in joins]
    assignment = {
        member_id: assignment_bytes([("t", partitions)], version)
        for member_id, partitions in zip(ids, assigned, strict=True)
    }
    for member_id in ids:
        c.sync(member_id, generation, assignment if member_id == leader else None)
    return ids
