"""
AlterConfigs: replaces all options of resources. Old clients use it.
"""

from __future__ import annotations

from functools import partial

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from barnabas.server.dynamic_config.admin import AlterResource, Change, Operation
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.config_authorization import require_alter
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import Steps, each_in_steps, map_in_steps
from barnabas.server.security.acl.permissions import (
    ALTER_CONFIGS_CLUSTER,
    ALTER_CONFIGS_GROUP,
    ALTER_CONFIGS_TOPIC,
)


@handles(
    AlterConfigsRequest, needs=asks(ALTER_CONFIGS_TOPIC, ALTER_CONFIGS_GROUP, ALTER_CONFIGS_CLUSTER)
)
async def alter_configs(
    request: AlterConfigsRequest, context: RequestContext
) -> AlterConfigsResponse:
    """
    Set the options that are named and no others; each resource succeeds or fails by itself.
    """
    wanted = await context.broker.turns.finish(each_in_steps(_wanted, request.resources))
    errors = await context.broker.config_admin().alter(
        wanted, partial(require_alter, context), validate_only=request.validate_only
    )
    outcomes = zip(request.resources, errors, strict=True)
    return AlterConfigsResponse(
        responses=await context.broker.turns.finish(map_in_steps(_outcome, outcomes))
    )


def _wanted(resource: AlterConfigsResource) -> Steps[AlterResource]:
    changes = yield from map_in_steps(
        lambda config: Change(config.name, Operation.SET, config.value), resource.configs
    )
    return AlterResource(
        type=resource.resource_type, name=resource.resource_name, changes=changes, replaces=True
    )


def _outcome(
    outcome: tuple[AlterConfigsResource, KafkaError | None],
) -> AlterConfigsResourceResponse:
    resource, error = outcome
    if error is None:
        return _answer(resource, ErrorCode.NONE, None)
    return _answer(resource, error.code, str(error))


def _answer(
    resource: AlterConfigsResource, code: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
