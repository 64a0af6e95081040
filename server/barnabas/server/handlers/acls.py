"""
DescribeAcls, CreateAcls and DeleteAcls (Kafka ``AclApis``).

Without an authorizer they are refused: entries that are in the metadata log stay in it. A request
with a number that is called unknown makes no sense to Kafka, which closes the connection.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from barnabas.coordination.cluster import acl_changes
from barnabas.coordination.security.acl.bindings import AclBinding, AclBindingFilter
from barnabas.coordination.security.acl.permissions import ALTER_CLUSTER, DESCRIBE_CLUSTER
from barnabas.coordination.steps import await_each, checkpoint, map_in_turns
from barnabas.coordination.text_memory import text_bytes
from barnabas.protocol.errors import ErrorCode, KafkaError, SecurityDisabled
from barnabas.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from barnabas.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from barnabas.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.errors import CloseConnection
from barnabas.server.requests.registry import handles

UNKNOWN: Final = 0
"""
What the kind of a resource, a pattern, an operation or a permission is that nobody knows.
"""


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
async def describe_acls(
    request: DescribeAclsRequest, context: RequestContext
) -> DescribeAclsResponse:
    _reject_unknown(_of_filter(request))
    context.require(DESCRIBE_CLUSTER)
    if context.broker.authorizer is None:
        raise SecurityDisabled("No Authorizer is configured on the broker")
    wanted = _filter(request)
    room = context.room()
    found: dict[tuple[int, str, int], list[AclDescription]] = {}
    for _, entry in context.broker.image.acls.items():
        await checkpoint()
        if wanted.matches(entry):
            room.take(1, text_bytes(entry.resource_name) + text_bytes(entry.principal))
            resource = (entry.resource_type, entry.resource_name, entry.pattern_type)
            found.setdefault(resource, []).append(
                AclDescription(
                    principal=entry.principal,
                    host=entry.host,
                    operation=entry.operation,
                    permission_type=entry.permission_type,
                )
            )
    resources = []
    for (resource_type, name, pattern_type), entries in found.items():
        await checkpoint()
        resources.append(
            DescribeAclsResource(
                resource_type=resource_type,
                resource_name=name,
                pattern_type=pattern_type,
                acls=entries,
            )
        )
    return DescribeAclsResponse(error_code=ErrorCode.NONE, error_message="", resources=resources)


@handles(CreateAclsRequest, needs=asks(ALTER_CLUSTER))
async def create_acls(request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    entries = []
    for creation in request.creations:
        await checkpoint()
        _reject_unknown(
            (
                creation.resource_type,
                creation.resource_pattern_type,
                creation.operation,
                creation.permission_type,
            )
        )
        entries.append(_entry(creation))
    context.require(ALTER_CLUSTER)
    _check_authorizer(context)
    outcomes = await acl_changes.create(context.broker.controller, entries)
    return CreateAclsResponse(results=await map_in_turns(_creation_result, outcomes))


@handles(DeleteAclsRequest, needs=asks(ALTER_CLUSTER))
async def delete_acls(request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
    filters = []
    for wanted in request.filters:
        await checkpoint()
        _reject_unknown(_of_filter(wanted))
        filters.append(_filter(wanted))
    context.require(ALTER_CLUSTER)
    _check_authorizer(context)
    room = context.room()

    def take_room(entry: AclBinding) -> None:
        names = entry.resource_name, entry.principal, entry.host
        room.take(1, sum(map(text_bytes, names)))

    outcomes = await acl_changes.delete(context.broker.controller, filters, take_room)
    return DeleteAclsResponse(filter_results=await await_each(_deletion_result, outcomes))


def _check_authorizer(context: RequestContext) -> None:
    if context.broker.authorizer is None:
        raise SecurityDisabled("No Authorizer is configured.")


def _entry(creation: AclCreation) -> AclBinding:
    return AclBinding(
        resource_type=creation.resource_type,
        resource_name=creation.resource_name,
        pattern_type=creation.resource_pattern_type,
        principal=creation.principal,
        host=creation.host,
        operation=creation.operation,
        permission_type=creation.permission_type,
    )


def _filter(wanted: DescribeAclsRequest | DeleteAclsFilter) -> AclBindingFilter:
    return AclBindingFilter(
        resource_type=wanted.resource_type_filter,
        resource_name=wanted.resource_name_filter,
        pattern_type=wanted.pattern_type_filter,
        principal=wanted.principal_filter,
        host=wanted.host_filter,
        operation=wanted.operation,
        permission_type=wanted.permission_type,
    )


def _creation_result(error: KafkaError | None) -> AclCreationResult:
    if error is None:
        return AclCreationResult(error_code=ErrorCode.NONE)
    return AclCreationResult(error_code=error.code, error_message=str(error))


async def _deletion_result(outcome: list[AclBinding] | KafkaError) -> DeleteAclsFilterResult:
    if isinstance(outcome, KafkaError):
        return DeleteAclsFilterResult(
            error_code=outcome.code, error_message=str(outcome), matching_acls=[]
        )
    deleted = await map_in_turns(_deleted, outcome)
    return DeleteAclsFilterResult(error_code=ErrorCode.NONE, matching_acls=deleted)


def _deleted(entry: AclBinding) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_code=ErrorCode.NONE,
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        pattern_type=entry.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )
