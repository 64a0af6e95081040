"""
DeleteGroups: groups without members, and their offsets.
"""

from __future__ import annotations

from barnabas.protocol.messages.delete_groups import (
    DeleteGroupsRequest,
)
from barnabas.server.purgatory import Delayed
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import Steps
from barnabas.server.security.acl.permissions import DELETE_GROUP


@handles(DeleteGroupsRequest, needs=asks(DELETE_GROUP))
def delete_groups(request: DeleteGroupsRequest, context: RequestContext) -> Steps[Delayed]:
    """
    Delete each group that is named, once; the empty name is a name.
    """
    return (
        yield from context.broker.groups.delete_groups(list(dict.fromkeys(request.groups_names)))
    )
