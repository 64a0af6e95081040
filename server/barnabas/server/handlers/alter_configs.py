"""
AlterConfigs: replaces all options of resources. Old clients use it.
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from barnabas.server.config_admin import AlterResource, Change, Operation
from barnabas.server.context import Context
from barnabas.server.handlers import handles


def _error_response(
    request: AlterConfigsRequest, _version: int, code: ErrorCode, message: str | None
) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[_answer(resource, code, message) for resource in request.resources]
    )


@handles(AlterConfigsRequest, error_response=_error_response)
async def alter_configs(request: AlterConfigsRequest, context: Context) -> AlterConfigsResponse:
    """
    Set the options that are named and no others; each resource succeeds or fails by itself.
    """
    wanted = [
        AlterResource(
            type=resource.resource_type,
            name=resource.resource_name,
            changes=[
                Change(config.name, Operation.SET, config.value) for config in resource.configs
            ],
            replaces=True,
        )
        for resource in request.resources
    ]
    errors = await context.config_admin.alter(wanted, validate_only=request.validate_only)
    return AlterConfigsResponse(
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
