"""
DescribeAcls, CreateAcls and DeleteAcls, as Kafka answers without an authorizer (Kafka ``AclApis``).

Entries that a Kafka left in the metadata log stay in it, and are not acted upon.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from barnabas.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from barnabas.server.context import Context
from barnabas.server.handlers import handles

NO_AUTHORIZER: Final = "No Authorizer is configured."


def _not_created(
    request: CreateAclsRequest, _version: int, code: ErrorCode, message: str | None
) -> CreateAclsResponse:
    result = AclCreationResult(error_code=code, error_message=message)
    return CreateAclsResponse(results=[result] * len(request.creations))


def _not_deleted(
    request: DeleteAclsRequest, _version: int, code: ErrorCode, message: str | None
) -> DeleteAclsResponse:
    result = DeleteAclsFilterResult(error_code=code, error_message=message, matching_acls=[])
    return DeleteAclsResponse(filter_results=[result] * len(request.filters))


@handles(DescribeAclsRequest)
def describe_acls(_request: DescribeAclsRequest, _context: Context) -> DescribeAclsResponse:
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED,
        error_message="No Authorizer is configured on the broker",
        resources=[],
    )


@handles(CreateAclsRequest, error_response=_not_created)
def create_acls(request: CreateAclsRequest, context: Context) -> CreateAclsResponse:
    return _not_created(request, context.version, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)


@handles(DeleteAclsRequest, error_response=_not_deleted)
def delete_acls(request: DeleteAclsRequest, context: Context) -> DeleteAclsResponse:
    return _not_deleted(request, context.version, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
