"""
IncrementalAlterConfigs: changes some options of resources (KIP-339).
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.server.config_admin import AlterResource, Change
from barnabas.server.context import Context
from barnabas.server.handlers import handles


def _error_response(
    request: IncrementalAlterConfigsRequest, _version: int, code: ErrorCode, message: str | None
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[_answer(resource, code, message) for resource in request.resources]
    )


@handles(IncrementalAlterConfigsRequest, error_response=_error_response)
async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: Context
) -> IncrementalAlterConfigsResponse:
    """
    Change the options that are named; each resource succeeds or fails by itself.
    """
    wanted = [
        AlterResource(
            type=resource.resource_type,
            name=resource.resource_name,
            changes=[
                Change(config.name, config.config_operation, config.value)
                for config in resource.configs
            ],
        )
        for resource in request.resources
    ]
    errors = await context.config_admin.alter(wanted, validate_only=request.validate_only)
    return IncrementalAlterConfigsResponse(
        responses=[
            _answer(resource, ErrorCode.NONE, None)
            if error is None
            else _answer(resource, error.code, str(error))
            for resource, error in zip(request.resources, errors, strict=True)
        ]
    )


def _answer(
    resource: AlterConfigsResource, code: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
