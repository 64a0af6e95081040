"""
AlterClientQuotas: sets quotas and takes them away (KIP-546).
"""

from __future__ import annotations

import ipaddress
import socket

from barnabas.coordination.cluster import quota_changes
from barnabas.coordination.cluster.client_quotas import IP, ClientQuotaEntity, entity_of
from barnabas.coordination.cluster.quota_changes import EntityChanges
from barnabas.coordination.security.acl.permissions import ALTER_CONFIGS_CLUSTER
from barnabas.coordination.steps import await_each, checkpoint, map_in_turns
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    RequestEntryData,
    ResponseEntryData,
)
from barnabas.server.requests.authorization import gate
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles


@handles(AlterClientQuotasRequest, needs=gate(ALTER_CONFIGS_CLUSTER))
async def alter_client_quotas(
    request: AlterClientQuotasRequest, context: RequestContext
) -> AlterClientQuotasResponse:
    asked = await await_each(_asked, request.entries)
    names = {name for entity, _ in asked for kind, name in entity if kind == IP and name}
    hosts = await context.broker.workers.in_upkeep(lambda: set(filter(_is_host, names)))

    outcomes = await quota_changes.alter(
        context.broker.controller,
        asked,
        hosts.__contains__,
        validate_only=request.validate_only,
    )
    entries = await await_each(_answer, outcomes.items())
    return AlterClientQuotasResponse(entries=entries)


async def _asked(entry: RequestEntryData) -> EntityChanges:
    names: dict[str, str | None] = {}
    for part in entry.entity:
        await checkpoint()
        names[part.entity_type] = part.entity_name
    changes = await map_in_turns(lambda op: (op.key, None if op.remove else op.value), entry.ops)
    return entity_of(names), changes


async def _answer(outcome: tuple[ClientQuotaEntity, KafkaError | None]) -> ResponseEntryData:
    entity, error = outcome
    parts = []
    for kind, name in entity:
        await checkpoint()
        parts.append(EntityData(entity_type=kind, entity_name=name))
    return ResponseEntryData(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else str(error),
        entity=parts,
    )


def _is_host(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        try:
            return bool(socket.getaddrinfo(name, None))
        except (OSError, UnicodeError):
            return False
    return True
