"""
Members of consumer groups, of the consumer protocol and of the classic one.

A member remembers on each side what that broker has told it, and sends that back: the ids of topics
and members differ, epochs and partitions must not.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from tests.interop.differential.sides import CLOSED, SILENT, Membership, Session
from tests.interop.differential.steps import Answer, Ask, Step, fixed
from tests.support.build import api_request
from tests.support.group_requests import heartbeat_request

SECONDS_TO_SETTLE: Final = 0.3
"""Longer than it takes a broker to match patterns, or to learn of a change of topics."""
CLIENT_ID: Final = "t"
"""That of ``WireClient``: ids of classic members begin with it."""
SUBSCRIPTION_VERSION: Final = 3
LONG_MS: Final = 3_600_000
"""A timeout that is over in no workload."""
LONGEST_JOIN_MS: Final = 30_000
"""
Members that do not come are waited for this long: some never do. All other steps of an act take
less together, so that no such time ends between two steps.
"""
UNKNOWN_MEMBER_ID: Final = 25
MEMBER_ID_REQUIRED: Final = 79


@dataclass(frozen=True, slots=True)
class Pause:
    """
    Let the brokers do what they do by themselves.
    """

    seconds: float = SECONDS_TO_SETTLE

    async def run(self, session: Session) -> Any:
        await asyncio.sleep(self.seconds)
        await session.side.learn_topics()
        return "paused"

    def __str__(self) -> str:
        return f"wait for {self.seconds} s"


@dataclass(frozen=True, slots=True)
class Member:
    """
    A member of a group, by the name that the workload has for it.
    """

    group: str
    name: str

    def known(self, session: Session) -> Membership:
        return session.side.members[self.group, self.name]

    # The consumer protocol

    def beat(
        self,
        version: int = 1,
        *,
        joins: bool = False,
        epoch: int | None = None,
        ahead: int = 0,
        names: Sequence[str] | None = None,
        regex: str | None = None,
        assignor: str | None = None,
        instance: str | None = None,
        rack: str | None = None,
        timeout_ms: int = -1,
        owns: str = "nothing said",
    ) -> Step:
        """
        Send a heartbeat.

        Args:
            joins: begin anew, with epoch 0.
            epoch: to send in place of the one that the member has.
            ahead: added to the one that it has.
            owns: ``what it has``, ``nothing``, ``something else`` or ``nothing said``.
        """

        def make(session: Session) -> Message:
            known = self.known(session)
            known.member_id = known.member_id or self.name
            sent = 0 if joins else known.epoch + ahead if epoch is None else epoch
            return api_request(
                "consumer_group_heartbeat",
                group_id=self.group,
                member_id=known.member_id,
                member_epoch=sent,
                instance_id=instance,
                rack_id=rack,
                rebalance_timeout_ms=timeout_ms,
                subscribed_topic_names=names,
                subscribed_topic_regex=regex if version >= 1 else None,
                server_assignor=assignor,
                topic_partitions=_owned(owns, known),
            )

        said = {"names": names, "regex": regex, "assignor": assignor, "instance": instance}
        told = ", ".join(f"{name} {value}" for name, value in said.items() if value is not None)
        at = "joining" if joins else f"epoch {epoch}" if epoch is not None else f"epoch +{ahead}"
        text = f"{self.name} of {self.group} heartbeat, {at}, owns {owns}, {told}, {timeout_ms} ms"
        return Ask(text, version, make, self._learn)

    def leave(self, epoch: int = -1, instance: str | None = None) -> Step:
        """
        Leave the group, for good (-1) or for a while (-2).
        """
        return self.beat(epoch=epoch, instance=instance)

    def _learn(self, session: Session, answer: Any) -> None:
        known = self.known(session)
        if answer.error_code:
            return
        known.epoch = max(answer.member_epoch, 0)
        if answer.assignment is not None:
            known.assigned = {
                each.topic_id: sorted(each.partitions)
                for each in answer.assignment.topic_partitions
            }

    # The classic protocol

    def join(
        self,
        topics: Sequence[str],
        *,
        version: int = 9,
        instance: str | None = None,
        protocols: Sequence[str] = ("range",),
        owns: bool = True,
        keeps_id: bool = True,
    ) -> Step:
        """
        Send a JoinGroup, and another if the broker gives an id first. The leader then assigns
        partition 0 of each topic to itself.
        """
        return _Join(self, tuple(topics), version, instance, tuple(protocols), owns, keeps_id)

    def sync(self, *, version: int = 5, ahead: int = 0) -> Step:
        def make(session: Session) -> Message:
            known = self.known(session)
            return api_request(
                "sync_group",
                group_id=self.group,
                generation_id=known.epoch + ahead,
                member_id=known.member_id,
                assignments=[],
            )

        return _Synced(Ask(f"{self.name} of {self.group} syncs, +{ahead}", version, make), self)

    def classic_heartbeat(self, *, ahead: int = 0) -> Step:
        def make(session: Session) -> Message:
            known = self.known(session)
            epoch, member_id = known.epoch + ahead, known.member_id
            return heartbeat_request(self.group, member_id, epoch)

        return Ask(f"{self.name} of {self.group} classic heartbeat, +{ahead}", 4, make)

    def be_removed(self, instance: str | None = None) -> Step:
        """
        Be removed by LeaveGroup, which the member itself or an administrator sends.
        """

        def make(session: Session) -> Message:
            member_id = "" if instance else self.known(session).member_id
            identity = {"member_id": member_id, "group_instance_id": instance}
            return api_request("leave_group", group_id=self.group, members=[identity])

        return Ask(f"LeaveGroup of {self.name} {instance}, {self.group}", 5, make)

    # Offsets

    def commit(
        self,
        topic: str,
        offsets: dict[int, int],
        *,
        ahead: int = 0,
        version: int = 9,
        least: int = -(2**31),
    ) -> Step:
        """
        Commit offsets as this member.

        Args:
            least: the epoch to send, if the one that is due is below it.
        """

        def make(session: Session) -> Message:
            known = self.known(session)
            named = session.named(topic, by_id=version >= 10)
            partitions = [
                {"partition_index": index, "committed_offset": offset, "committed_metadata": ""}
                for index, offset in offsets.items()
            ]
            return api_request(
                "offset_commit",
                group_id=self.group,
                generation_id_or_member_epoch=max(known.epoch + ahead, least),
                member_id=known.member_id or self.name,
                topics=[{"partitions": partitions, **named}],
            )

        text = f"{self.name} of {self.group} commits {offsets} of {topic}, epoch +{ahead}"
        return Ask(text, version, make)

    def fetch_offsets(self, topic: str, partitions: int, *, ahead: int = 0) -> Step:
        def make(session: Session) -> Message:
            known = self.known(session)
            group = {
                "group_id": self.group,
                "member_id": known.member_id or self.name,
                "member_epoch": known.epoch + ahead,
                "topics": [{"name": topic, "partition_indexes": range(partitions)}],
            }
            return api_request("offset_fetch", groups=[group], require_stable=False)

        return Ask(f"{self.name} of {self.group} reads offsets, epoch +{ahead}", 9, make)


@dataclass(frozen=True, slots=True)
class _Join:
    member: Member
    topics: tuple[str, ...]
    version: int
    instance: str | None
    protocols: tuple[str, ...]
    owns: bool
    keeps_id: bool

    async def run(self, session: Session) -> Any:
        begun = time.monotonic()
        answer = await self._join(session)
        if time.monotonic() - begun > LONGEST_JOIN_MS / 2000:
            # The members that did not come have timers of the same length, which end about now.
            await asyncio.sleep(SECONDS_TO_SETTLE)
        return answer

    async def _join(self, session: Session) -> Any:
        known = self.member.known(session)
        if not (self.keeps_id and known.member_id):
            if self.instance is not None:
                known.member_id = ""
            elif known.member_id not in session.side.aliases:
                # A consumer group takes any id, and ``range`` goes by it; a classic group takes its
                # own ids only, which begin with that of the client, too. Two of these in a group
                # would have no order that is the same on both sides.
                known.member_id = self._chosen_id
        answer = await session.ask(self._request(session, known), self.version)
        if not isinstance(answer, str) and answer.error_code == UNKNOWN_MEMBER_ID:
            known.member_id = ""
            answer = await session.ask(self._request(session, known), self.version)
        if not isinstance(answer, str) and answer.error_code == MEMBER_ID_REQUIRED:
            self._rename(session, known, answer.member_id)
            answer = await session.ask(self._request(session, known), self.version)
        if isinstance(answer, str):
            return answer
        if not answer.error_code:
            self._rename(session, known, answer.member_id)
            known.epoch = answer.generation_id
            if answer.leader == answer.member_id and answer.members:
                await self._lead(session, known, answer)
        return Answer(answer, self.version)

    @property
    def _chosen_id(self) -> str:
        """
        The id that the member has in a group that takes any.
        """
        return f"{CLIENT_ID}-{self.member.name}"

    def _rename(self, session: Session, known: Membership, member_id: str) -> None:
        known.member_id = member_id
        # An id that comes back keeps its alias: two members with one would have no order.
        if member_id != self._chosen_id and member_id not in session.side.aliases:
            known.ids += 1
            session.side.aliases[member_id] = f"id {known.ids} of {self.member.name}"

    def _request(self, session: Session, known: Membership) -> Message:
        owned = [
            TopicPartition(topic=session.side.topic_names[topic_id], partitions=partitions)
            for topic_id, partitions in known.assigned.items()
            if self.owns and topic_id in session.side.topic_names
        ]
        subscription = ConsumerProtocolSubscription(
            topics=[*self.topics], owned_partitions=owned, generation_id=-1
        )
        version = SUBSCRIPTION_VERSION
        metadata = version.to_bytes(2, "big") + encode(subscription, version)
        return api_request(
            "join_group",
            group_id=self.member.group,
            session_timeout_ms=LONG_MS,
            rebalance_timeout_ms=LONGEST_JOIN_MS,
            member_id=known.member_id,
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocols=[{"name": name, "metadata": metadata} for name in self.protocols],
        )

    async def _lead(self, session: Session, known: Membership, answer: Any) -> None:
        assignment = ConsumerProtocolAssignment(
            assigned_partitions=[
                TopicPartition(topic=topic, partitions=[0]) for topic in self.topics
            ]
        )
        data = SUBSCRIPTION_VERSION.to_bytes(2, "big") + encode(assignment, SUBSCRIPTION_VERSION)
        sync = api_request(
            "sync_group",
            group_id=self.member.group,
            generation_id=answer.generation_id,
            member_id=known.member_id,
            group_instance_id=self.instance,
            assignments=[
                {
                    "member_id": each.member_id,
                    "assignment": data if each.member_id == known.member_id else b"",
                }
                for each in answer.members
            ],
        )
        await session.ask(sync, 5)

    def __str__(self) -> str:
        return (
            f"{self.member.name} of {self.member.group} joins as a classic member,"
            f" topics {self.topics}, instance {self.instance}, protocols {self.protocols},"
            f" owns {self.owns}, v{self.version}"
        )


@dataclass(frozen=True, slots=True)
class _Synced:
    """
    A SyncGroup, whose assignment is compared by what it says.
    """

    ask: Ask
    member: Member

    async def run(self, session: Session) -> Any:
        answer = await self.ask.run(session)
        if answer in {CLOSED, SILENT} or isinstance(answer, str):
            return answer
        message = answer.message
        if message.error_code or not message.assignment:
            return answer
        said = decode(ConsumerProtocolAssignment, SUBSCRIPTION_VERSION, message.assignment[2:])
        known = self.member.known(session)
        found: dict[UUID, list[int]] = {}
        for each in said.assigned_partitions:
            found[session.topic_id(each.topic)] = sorted(each.partitions)
        known.assigned = found
        return sorted(
            (each.topic, tuple(sorted(each.partitions))) for each in said.assigned_partitions
        )

    def __str__(self) -> str:
        return str(self.ask)


def _owned(owns: str, known: Membership) -> list[dict[str, Any]] | None:
    match owns:
        case "nothing said":
            return None
        case "nothing":
            return []
        case "what it has":
            return [_in_topic(*each) for each in known.assigned.items()]
        case _:
            return [
                _in_topic(topic_id, [*partitions, 99])
                for topic_id, partitions in known.assigned.items()
            ] or [_in_topic(UUID(int=5), [0])]


def _in_topic(topic_id: UUID, partitions: Sequence[int]) -> dict[str, Any]:
    return {"topic_id": topic_id, "partitions": partitions}


def describe_groups(kind: str, groups: Sequence[str], version: int) -> Step:
    """
    Describe the groups and their members.

    Args:
        kind: ``consumer``, ``share`` or ``streams``, or "" as clients of the classic protocol do.
    """
    text = (
        f"{kind.title()}{'Group' if kind else ''}Describe{'' if kind else 'Groups'} of {[*groups]}"
    )
    if not kind:
        return fixed(text, version, "describe_groups", groups=groups)
    allowed = kind != "consumer" or version > 0
    return fixed(
        text,
        version,
        f"{kind}_group_describe",
        group_ids=groups,
        include_authorized_operations=allowed,
    )
