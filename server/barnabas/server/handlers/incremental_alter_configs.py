"""
IncrementalAlterConfigs: changes some options of resources (KIP-339).
"""

from __future__ import annotations

from barnabas.coordination.cluster.image import ConfigResourceType
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.server.dynamic_config.admin import ConfigChange
from barnabas.server.handlers.altered_configs import NEEDS, altered
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles


@handles(IncrementalAlterConfigsRequest, needs=NEEDS)
async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse:
    """
    Change the options that are named; each resource succeeds or fails by itself.
    """
    responses = await altered(
        request, context, AlterConfigsResourceResponse, _change, sentence_of=_sentence
    )
    return IncrementalAlterConfigsResponse(responses=responses)


def _change(config: AlterableConfig) -> ConfigChange:
    return ConfigChange(config.name, config.config_operation, config.value)


def _sentence(resource: AlterConfigsResource, error: KafkaError) -> str | None:
    # Kafka answers for loggers itself, and for all others as its controller does.
    is_logger = resource.resource_type == ConfigResourceType.BROKER_LOGGER
    return error.own_sentence if is_logger else str(error)
