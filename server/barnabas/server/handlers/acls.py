"""
DescribeAcls, CreateAcls and DeleteAcls, as Kafka answers without an authorizer (Kafka ``AclApis``).

Entries that a Kafka left in the metadata log stay in it, and are not acted upon. A request with a
kind that is called unknown makes no sense to Kafka, which hangs up on who sends it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from barnabas.protocol.errors import SecurityDisabled
from barnabas.protocol.messages.create_acls import (
    CreateAclsRequest,
    CreateAclsResponse,
)
from barnabas.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.errors import CloseConnection
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import Steps
from barnabas.server.security.acl.permissions import ALTER_CLUSTER, DESCRIBE_CLUSTER

UNKNOWN: Final = 0
"""
What the kind of a resource, a pattern, an operation or a permission is that nobody knows.
"""

NO_AUTHORIZER: Final = "No Authorizer is configured."


def _reject_unknown(kinds: Iterable[int]) -> None:
    """
    Raises:
        CloseConnection: one of the codes stands for what nobody knows (Kafka
            ``CreateAclsRequest.validate`` and its like).
    """
    if UNKNOWN in kinds:
        raise CloseConnection("a request about ACLs has a kind that is UNKNOWN")


def _of_filter(wanted: DescribeAclsRequest | DeleteAclsFilter) -> tuple[int, ...]:
    return (
        wanted.resource_type_filter,
        wanted.pattern_type_filter,
        wanted.operation,
        wanted.permission_type,
    )


@handles(DescribeAclsRequest, needs=asks(DESCRIBE_CLUSTER))
def describe_acls(request: DescribeAclsRequest, _context: RequestContext) -> DescribeAclsResponse:
    _reject_unknown(_of_filter(request))
    raise SecurityDisabled("No Authorizer is configured on the broker")


@handles(CreateAclsRequest, needs=asks(ALTER_CLUSTER))
def create_acls(request: CreateAclsRequest, _context: RequestContext) -> Steps[CreateAclsResponse]:
    for creation in request.creations:
        yield
        _reject_unknown(
            (
                creation.resource_type,
                creation.resource_pattern_type,
                creation.operation,
                creation.permission_type,
            )
        )
    raise SecurityDisabled(NO_AUTHORIZER)


@handles(DeleteAclsRequest, needs=asks(ALTER_CLUSTER))
def delete_acls(request: DeleteAclsRequest, _context: RequestContext) -> Steps[DeleteAclsResponse]:
    for wanted in request.filters:
        yield
        _reject_unknown(_of_filter(wanted))
    raise SecurityDisabled(NO_AUTHORIZER)
