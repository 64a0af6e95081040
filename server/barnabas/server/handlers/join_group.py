"""
JoinGroup: somebody wants to be a member of a group, or of its next generation.
"""

from __future__ import annotations

from typing import Final

from barnabas.coordination.groups.caller import Caller
from barnabas.coordination.groups.classic.joining import offer_of
from barnabas.coordination.security.acl.permissions import READ_GROUP
from barnabas.protocol.codec.schema import replace
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.server.requests.authorization import gate
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles

NULL_PROTOCOL_SINCE: Final = 7


@handles(JoinGroupRequest, needs=gate(READ_GROUP))
async def join_group(request: JoinGroupRequest, context: RequestContext) -> JoinGroupResponse:
    """
    Answer when the round of joins is over, or at once if there is nothing to wait for.
    """
    caller = Caller(context.version, context.client_id or "", f"/{context.client.address}")
    offer = await offer_of(request)
    return _of_version(await context.broker.groups.join(request, caller, offer), context.version)


def _of_version(response: JoinGroupResponse, version: int) -> JoinGroupResponse:
    if response.protocol_name is None and version < NULL_PROTOCOL_SINCE:
        return replace(response, protocol_name="")
    return response
