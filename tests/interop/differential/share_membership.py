"""
Members of share groups, and what is asked of such groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from barnabas.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from barnabas.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from barnabas.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.protocol.structs import replace
from tests.interop.differential.sides import Membership, Session
from tests.interop.differential.steps import Answer, Ask, Step


@dataclass(frozen=True, slots=True)
class ShareMember:
    """
    A member of a share group, by its id. It remembers on each side the epoch that it was given.
    """

    group: str
    name: str

    def beat(
        self,
        *,
        joins: bool = False,
        epoch: int | None = None,
        ahead: int = 0,
        names: Sequence[str] | None = None,
        rack: str | None = None,
    ) -> Step:
        """
        Send a heartbeat.

        Args:
            joins: begin anew, with epoch 0.
            epoch: to send in place of the one that the member has.
            ahead: added to the one that it has.
        """

        def make(session: Session) -> ShareGroupHeartbeatRequest:
            sent = self._known(session).epoch + ahead if epoch is None else epoch
            return ShareGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self.name,
                member_epoch=0 if joins else sent,
                rack_id=rack,
                subscribed_topic_names=None if names is None else [*names],
            )

        at = "joining" if joins else f"epoch {epoch}" if epoch is not None else f"epoch +{ahead}"
        text = f"{self.name} of {self.group} heartbeat, {at}, topics {names}, rack {rack}"
        return Ask(text, 1, make, self._learn)

    def leave(self) -> Step:
        return self.beat(epoch=-1)

    def _known(self, session: Session) -> Membership:
        return session.side.members[self.group, self.name]

    def _learn(self, session: Session, answer: Any) -> None:
        if not answer.error_code:
            self._known(session).epoch = max(answer.member_epoch, 0)


def describe_share_groups(groups: Sequence[str]) -> Step:
    """
    What the groups are, and their members.
    """
    request = ShareGroupDescribeRequest(group_ids=[*groups], include_authorized_operations=True)
    return Ask(f"ShareGroupDescribe of {list(groups)}", 1, lambda _: request)


def describe_share_offsets(groups: Sequence[str], version: int) -> Step:
    """
    Where the groups begin to read each partition that they have.
    """
    request = DescribeShareGroupOffsetsRequest(
        groups=[
            DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None) for group in groups
        ]
    )
    return Ask(f"DescribeShareGroupOffsets of {list(groups)}", version, lambda _: request)


def alter_share_offsets(group: str, topic: str, offsets: Mapping[int, int]) -> Step:
    """
    Let the group begin at other offsets.
    """
    partitions = [
        AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
        for index, offset in offsets.items()
    ]
    named = AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=partitions)
    request = AlterShareGroupOffsetsRequest(group_id=group, topics=[named])
    return _InOtherWords(Ask(f"{group} begins at {dict(offsets)} of {topic}", 0, lambda _: request))


def delete_share_offsets(group: str, topics: Sequence[str]) -> Step:
    """
    Let the group forget topics.
    """
    request = DeleteShareGroupOffsetsRequest(
        group_id=group,
        topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics],
    )
    return _InOtherWords(Ask(f"{group} forgets {list(topics)}", 0, lambda _: request))


@dataclass(frozen=True, slots=True)
class _InOtherWords:
    """
    A request whose topics and partitions are answered with each broker's sentence for the code.
    """

    ask: Ask

    async def run(self, session: Session) -> Any:
        answer = await self.ask.run(session)
        if isinstance(answer, Answer):
            responses = [_wordless(topic) for topic in answer.message.responses]
            answer = answer._replace(message=replace(answer.message, responses=responses))
        return answer

    def __str__(self) -> str:
        return str(self.ask)


def _wordless(topic: Any) -> Any:
    """
    A topic's part of an answer, without messages.
    """
    partitions = getattr(topic, "partitions", None)
    if partitions is None:
        return replace(topic, error_message=None)
    return replace(topic, partitions=[replace(each, error_message=None) for each in partitions])
