"""
DescribeClientQuotas: the quotas of the entities that match a filter (KIP-546).
"""

from __future__ import annotations

from barnabas.coordination.cluster.client_quotas import client_quotas
from barnabas.coordination.cluster.quota_filters import filter_of, matches
from barnabas.coordination.security.acl.permissions import DESCRIBE_CONFIGS_CLUSTER
from barnabas.coordination.steps import checkpoint
from barnabas.coordination.text_memory import text_bytes
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from barnabas.server.requests.authorization import gate
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles


@handles(DescribeClientQuotasRequest, needs=gate(DESCRIBE_CONFIGS_CLUSTER))
async def describe_client_quotas(
    request: DescribeClientQuotasRequest, context: RequestContext
) -> DescribeClientQuotasResponse:
    wanted = await filter_of(request.components)
    room = context.room()
    entries = room.list()
    for entity, quotas in client_quotas(context.broker.image).items():
        await checkpoint()
        if matches(entity, wanted, strict=request.strict):
            size = sum(text_bytes(name or "") for _, name in entity)
            room.take(1 + len(entity) + len(quotas), size)
            names = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
            values = [ValueData(key=key, value=value) for key, value in quotas.items()]
            entries.append(EntryData(entity=names, values=values))
    return DescribeClientQuotasResponse(
        error_code=ErrorCode.NONE,
        error_message="",  # Kafka answers so, not with null.
        entries=entries,
    )
