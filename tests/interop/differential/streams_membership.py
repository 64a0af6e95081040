"""
Members of streams groups, and the programs that they run.

A member remembers on each side what that broker has told it, and sends that back. All ids are the
workload's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.messages.streams_group_heartbeat import Topology
from tests.interop.differential.membership import SECONDS_TO_SETTLE, Member
from tests.interop.differential.sides import Membership, Session
from tests.interop.differential.steps import Answer, Ask, Step
from tests.support.build import api_request

MISSING_INTERNAL_TOPICS: Final = 3
MOST_LOOKS: Final = 20
"""How often missing topics are looked for; those that cannot be created never come."""
ROLES: Final = ("active", "standby", "warmup")


def internal_names(topology: Topology) -> list[str]:
    return [
        topic.name
        for each in topology.subtopologies
        for topic in (*each.state_changelog_topics, *each.repartition_source_topics)
    ]


def _told(topology: Topology) -> str:
    parts = (
        f"{each.subtopology_id} of {[*each.source_topics, *each.repartition_source_topics]}"
        for each in topology.subtopologies
    )
    return f"{topology.epoch}: {', '.join(parts)}"


@dataclass(frozen=True, slots=True)
class StreamsMember(Member):
    """
    A member of a streams group, by the name that the workload has for it.
    """

    def pulse(
        self,
        *,
        topology: Topology | None = None,
        epoch: int | None = None,
        ahead: int = 0,
        owns: str = "nothing said",
        timeout_ms: int = -1,
        process: str | None = None,
        rack: str | None = None,
        instance: str | None = None,
        endpoint: int | None = None,
        tags: Sequence[tuple[str, str]] | None = None,
        shuts_down: bool = False,
        internal: Sequence[str] = (),
        knows_endpoints: bool = True,
    ) -> Step:
        """
        Send a heartbeat; with a topology it joins.

        Args:
            epoch: to send in place of the one that the member has.
            ahead: added to the one that it has.
            owns: ``what it has``, ``nothing``, ``something else``, ``one kind`` or ``nothing
                said``.
            endpoint: the port of its user endpoint.
            internal: topics that may be created meanwhile.
        """

        def make(session: Session) -> Message:
            known = self.known(session)
            known.member_id = known.member_id or self.name
            sent = known.epoch + ahead if epoch is None else epoch
            if topology is not None and epoch is None:
                sent = 0
            active, standby, warmup = _owned(owns, known)
            return api_request(
                "streams_group_heartbeat",
                group_id=self.group,
                member_id=known.member_id,
                member_epoch=sent,
                endpoint_information_epoch=known.endpoint_epoch if knows_endpoints else 77,
                instance_id=instance,
                rack_id=rack,
                rebalance_timeout_ms=timeout_ms,
                topology=topology,
                active_tasks=active,
                standby_tasks=standby,
                warmup_tasks=warmup,
                process_id=process,
                user_endpoint=None if endpoint is None else {"host": "h", "port": endpoint},
                client_tags=None
                if tags is None
                else [{"key": key, "value": value} for key, value in tags],
                shutdown_application=shuts_down,
            )

        said = {
            "process": process,
            "rack": rack,
            "instance": instance,
            "endpoint": endpoint,
            "tags": tags,
            "shuts down": shuts_down or None,
            "topology": None if topology is None else _told(topology),
        }
        told = ", ".join(f"{name} {value}" for name, value in said.items() if value is not None)
        text = (
            f"{self.name} of {self.group} pulse, epoch {epoch} +{ahead}, owns {owns}, {told},"
            f" {timeout_ms} ms"
        )
        return _Pulse(Ask(text, 0, make, self._learn_tasks), tuple(internal))

    def go(self, epoch: int = -1, *, shuts_down: bool = False) -> Step:
        return self.pulse(epoch=epoch, shuts_down=shuts_down)

    def _learn_tasks(self, session: Session, answer: Any) -> None:
        known = self.known(session)
        if answer.error_code:
            return
        known.epoch = max(answer.member_epoch, 0)
        known.endpoint_epoch = answer.endpoint_information_epoch
        for role in ROLES:
            tasks = getattr(answer, f"{role}_tasks")
            if tasks is not None:
                known.tasks[role] = {each.subtopology_id: sorted(each.partitions) for each in tasks}


@dataclass(frozen=True, slots=True)
class _Pulse:
    """
    A heartbeat, after which internal topics are waited for that were missing.
    """

    ask: Ask
    internal: tuple[str, ...]

    async def run(self, session: Session) -> Any:
        answer = await self.ask.run(session)
        if not isinstance(answer, Answer) or not self.internal:
            return answer
        codes = {each.status_code for each in answer.message.status or ()}
        if MISSING_INTERNAL_TOPICS in codes:
            await self._wait(session)
        return answer

    async def _wait(self, session: Session) -> None:
        topics = [{"name": name} for name in self.internal]
        request = api_request("metadata", topics=topics, allow_auto_topic_creation=False)
        never_come = session.side.never_come
        for _ in range(1 if self.internal in never_come else MOST_LOOKS):
            found = await session.ask(request, 12)
            if not any(topic.error_code for topic in found.topics):
                break
            await asyncio.sleep(SECONDS_TO_SETTLE / 3)
        else:
            never_come.add(self.internal)
        await asyncio.sleep(SECONDS_TO_SETTLE)
        await session.side.learn_topics()

    def __str__(self) -> str:
        return str(self.ask)


def _owned(owns: str, known: Membership) -> list[list[dict[str, Any]] | None]:
    def all_of(role: str) -> list[dict[str, Any]]:
        return [
            {"subtopology_id": number, "partitions": partitions}
            for number, partitions in known.tasks.get(role, {}).items()
        ]

    match owns:
        case "nothing said":
            return [None, None, None]
        case "nothing":
            return [[], [], []]
        case "what it has":
            return [all_of(role) for role in ROLES]
        case "one kind":
            return [all_of("active"), None, None]
        case _:
            return [[{"subtopology_id": "0", "partitions": [0]}], [], []]
