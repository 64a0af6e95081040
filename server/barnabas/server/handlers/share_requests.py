"""
What ShareFetch and ShareAcknowledge have in common: the session of a request, and results by
topic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from uuid import UUID

from barnabas.coordination.groups.group_type import GroupType
from barnabas.coordination.groups.share.member import is_member_id
from barnabas.coordination.security.acl.permissions import READ_GROUP
from barnabas.coordination.share.sessions import ShareSessionKey, TopicIdPartition
from barnabas.coordination.steps import ENTRIES_PER_STEP, checkpoint, map_in_turns
from barnabas.protocol.errors import InvalidRequest
from barnabas.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from barnabas.protocol.messages.share_fetch import ShareFetchRequest
from barnabas.server.handlers.group_protocols import check_protocol
from barnabas.server.requests.context import RequestContext

T = TypeVar("T")

FIRST_RENEW_VERSION: Final = 2


def session_key(
    request: ShareFetchRequest | ShareAcknowledgeRequest, context: RequestContext
) -> ShareSessionKey:
    """
    The key of the session of a request, whose sender may be a member of its group.

    Raises:
        UnsupportedVersion: see ``check_protocol``.
        GroupAuthorizationFailed: the client may not read the group.
        InvalidRequest: there is no group id, or no member can have that id.
    """
    check_protocol(context, GroupType.SHARE)
    if request.group_id is None:
        raise InvalidRequest("Invalid group id in the request.")
    context.require(READ_GROUP, request.group_id)
    if request.member_id is None or not is_member_id(request.member_id):
        raise InvalidRequest("Invalid member id in the request.")
    return ShareSessionKey(request.group_id, request.member_id)


async def by_topic(
    results: Mapping[TopicIdPartition, Any], topic_result: Callable[..., T]
) -> list[T]:
    """
    The results of partitions, by topics.

    Args:
        topic_result: makes the result of a topic.
    """
    topics: dict[UUID, list[Any]] = {}
    for number, ((topic_id, _), result) in enumerate(results.items(), 1):
        if number % ENTRIES_PER_STEP == 0:
            await checkpoint()
        topics.setdefault(topic_id, []).append(result)

    def of_topic(item: tuple[UUID, list[Any]]) -> T:
        topic_id, partitions = item
        return topic_result(topic_id=topic_id, partitions=partitions)

    return await map_in_turns(of_topic, topics.items())
