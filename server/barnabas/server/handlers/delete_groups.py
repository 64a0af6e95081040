"""
DeleteGroups: groups without members, and their offsets.
"""

from __future__ import annotations

from barnabas.protocol.messages.delete_groups import (
    DeleteGroupsRequest,
)
from barnabas.server.requests.context import Context
from barnabas.server.requests.delayed import Delayed
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import Steps


@handles(DeleteGroupsRequest)
def delete_groups(request: DeleteGroupsRequest, context: Context) -> Steps[Delayed]:
    """
    Delete each group that is named, once; the empty name is a name.
    """
    return (yield from context.groups.delete_groups(list(dict.fromkeys(request.groups_names))))
