"""
Groups of the later protocols, as their Describe requests show them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

from barnabas.coordination.groups.group_type import GroupType
from barnabas.coordination.security.acl.bindings import ResourceType
from barnabas.coordination.security.acl.permissions import DESCRIBE_GROUP, DESCRIBE_TOPIC
from barnabas.coordination.steps import checkpoint
from barnabas.coordination.text_memory import text_bytes
from barnabas.protocol.codec.schema import replace
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.structs import struct
from barnabas.server.handlers.group_protocols import check_protocol
from barnabas.server.requests.authorized import authorized_operations
from barnabas.server.requests.context import RequestContext

HIDDEN_TOPICS: Final = (
    "The group has described topic(s) that the client is not authorized to describe."
)

G = TypeVar("G", bound=Any)


def names_size(member: Any) -> int:
    """
    About the bytes of the topics that a member subscribes to.
    """
    return sum(map(text_bytes, member.subscribed_topic_names))


@struct(kw_only=True)
class Describing(Generic[G]):
    """
    How groups of one type are described.
    """

    type: GroupType
    describe: Callable[[str], Awaitable[G]]
    refuse: Callable[[str, ErrorCode, str | None], G]
    topics_of: Callable[[G], Iterable[tuple[str, Sequence[int]]]]
    """Returns the topics and partitions that the description names."""
    size_of: Callable[[Any], int] = names_size
    """Returns about the bytes of a member in the answer, without those topics and partitions."""
    hidden: str = HIDDEN_TOPICS
    """What a client is told of a group with topics that it may not describe."""


async def described(request: Any, context: RequestContext, kind: Describing[G]) -> list[G]:
    """
    Each group that the request names. Those that the client may not describe come first, then those
    without a name; a group with topics that the client may not describe is refused.

    Raises:
        UnsupportedVersion: see ``check_protocol``.
    """
    check_protocol(context, kind.type)
    room = context.room()
    refused: list[G] = []
    nameless: list[G] = []
    groups: list[G] = room.list()
    for group_id in request.group_ids:
        await checkpoint()
        if not context.allows(DESCRIBE_GROUP, group_id):
            room.take(1)
            error = ErrorCode.GROUP_AUTHORIZATION_FAILED
            refused.append(kind.refuse(group_id, error, None))
            continue
        group = await _described(group_id, context, kind)
        room.take(1 + len(group.members), _size(group, kind))
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            operations = authorized_operations(context, ResourceType.GROUP, group_id)
            group = replace(group, authorized_operations=operations)
        (nameless if group.error_code == ErrorCode.INVALID_GROUP_ID else groups).append(group)
    return refused + nameless + groups


async def _described(group_id: str, context: RequestContext, kind: Describing[G]) -> G:
    try:
        group = await kind.describe(group_id)
    except KafkaError as error:
        told = str(error) if error.code == ErrorCode.GROUP_ID_NOT_FOUND else None
        return kind.refuse(group_id, error.code, told)
    for topic in dict.fromkeys(name for name, _ in kind.topics_of(group)):
        await checkpoint()
        if not context.allows(DESCRIBE_TOPIC, topic):
            return kind.refuse(group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, kind.hidden)
    return group


def _size(group: Any, kind: Describing[Any]) -> int:
    """
    About the bytes of a group in the answer.
    """
    partitions = sum(text_bytes(name) + 4 * len(indexes) for name, indexes in kind.topics_of(group))
    return partitions + sum(map(kind.size_of, group.members))
