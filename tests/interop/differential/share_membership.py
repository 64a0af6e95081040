"""
Members of share groups, and what is asked of such groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.structs import replace
from tests.interop.differential.sides import Membership, Session
from tests.interop.differential.steps import Answer, Ask, Step, fixed
from tests.support.build import api_request


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

        def make(session: Session) -> Message:
            sent = self._known(session).epoch + ahead if epoch is None else epoch
            return api_request(
                "share_group_heartbeat",
                group_id=self.group,
                member_id=self.name,
                member_epoch=0 if joins else sent,
                rack_id=rack,
                subscribed_topic_names=names,
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


def describe_share_offsets(groups: Sequence[str], version: int) -> Step:
    """
    Where the groups begin to read each partition that they have.
    """
    asked = [{"group_id": group, "topics": None} for group in groups]
    text = f"DescribeShareGroupOffsets of {list(groups)}"
    return fixed(text, version, "describe_share_group_offsets", groups=asked)


def alter_share_offsets(group: str, topic: str, offsets: Mapping[int, int]) -> Step:
    partitions = [
        {"partition_index": index, "start_offset": offset} for index, offset in offsets.items()
    ]
    topics = [{"topic_name": topic, "partitions": partitions}]
    text = f"{group} begins at {dict(offsets)} of {topic}"
    api = "alter_share_group_offsets"
    return _InOtherWords(fixed(text, 0, api, group_id=group, topics=topics))


def delete_share_offsets(group: str, topics: Sequence[str]) -> Step:
    named = [{"topic_name": name} for name in topics]
    text = f"{group} forgets {list(topics)}"
    api = "delete_share_group_offsets"
    return _InOtherWords(fixed(text, 0, api, group_id=group, topics=named))


@dataclass(frozen=True, slots=True)
class _InOtherWords:
    """
    A request whose topics and partitions are answered with each broker's sentence for the code.
    """

    ask: Step

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
