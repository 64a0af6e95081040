"""
AlterConfigs: replaces all options of resources. Old clients use it.
"""

from __future__ import annotations

from barnabas.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from barnabas.server.dynamic_config.admin import ConfigChange, ConfigOperation
from barnabas.server.handlers.altered_configs import NEEDS, altered
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles


@handles(AlterConfigsRequest, needs=NEEDS)
async def alter_configs(
    request: AlterConfigsRequest, context: RequestContext
) -> AlterConfigsResponse:
    """
    Set the options that are named and no others; each resource succeeds or fails by itself.
    """
    responses = await altered(
        request, context, AlterConfigsResourceResponse, _change, replaces=True
    )
    return AlterConfigsResponse(responses=responses)


def _change(config: AlterableConfig) -> ConfigChange:
    return ConfigChange(config.name, ConfigOperation.SET, config.value)
