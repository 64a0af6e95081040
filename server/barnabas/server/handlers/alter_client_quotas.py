"""
AlterClientQuotas: sets quotas and takes them away (KIP-546; Kafka ``ClientQuotaControlManager``).
"""

from __future__ import annotations

import ipaddress
import socket

from barnabas.protocol.errors import (
    ErrorCode,
    InvalidRequest,
    KafkaError,
    PolicyViolation,
    without_frames,
)
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
    RequestEntryData,
    ResponseEntryData,
)
from barnabas.server.cluster.client_quotas import (
    IP,
    ClientQuotaEntity,
    client_quotas,
    entity_of,
    quota_records,
)
from barnabas.server.cluster.controller import MAX_RECORDS_PER_REQUEST
from barnabas.server.cluster.image import Versioned
from barnabas.server.requests.authorization import gate
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import await_each, checkpoint
from barnabas.server.security.acl.permissions import ALTER_CONFIGS_CLUSTER


@handles(AlterClientQuotasRequest, needs=gate(ALTER_CONFIGS_CLUSTER))
async def alter_client_quotas(
    request: AlterClientQuotasRequest, context: RequestContext
) -> AlterClientQuotasResponse:
    """
    Change the quotas of each entity, or say why not. One that is named twice is changed once, and
    told so.
    """
    asked = await await_each(_asked, request.entries)
    names = {name for entity, _ in asked for kind, name in entity if kind == IP and name}
    hosts = await context.broker.workers.in_upkeep(lambda: set(filter(_is_host, names)))

    async def plan(made: list[Versioned]) -> dict[ClientQuotaEntity, KafkaError | None]:
        outcomes: dict[ClientQuotaEntity, KafkaError | None] = {}
        there = client_quotas(context.broker.image)
        for entity, ops in asked:
            await checkpoint()
            if entity in outcomes:
                outcomes[entity] = InvalidRequest(f"Ignoring duplicate entity {_text(entity)}")
                continue
            try:
                quotas = there.get(entity, {})
                changes = await _changes(entity, ops)
                made += quota_records(entity, changes, quotas, hosts.__contains__)
                outcomes[entity] = None
            except KafkaError as error:
                outcomes[entity] = without_frames(error)
        return outcomes

    async def alter() -> dict[ClientQuotaEntity, KafkaError | None]:
        made: list[Versioned] = []
        outcomes = await context.broker.turns.finish(plan(made))
        if len(made) > MAX_RECORDS_PER_REQUEST:
            raise PolicyViolation("Unable to perform excessively large batch operation.")
        if not request.validate_only:
            await context.broker.controller.write(made)
        return outcomes

    outcomes = await context.broker.controller.change(alter)
    entries = await await_each(_answer, outcomes.items())
    return AlterClientQuotasResponse(entries=entries)


async def _asked(entry: RequestEntryData) -> tuple[ClientQuotaEntity, list[OpData]]:
    names: dict[str, str | None] = {}
    for part in entry.entity:
        await checkpoint()
        names[part.entity_type] = part.entity_name
    return entity_of(names), entry.ops


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


async def _changes(entity: ClientQuotaEntity, ops: list[OpData]) -> list[tuple[str, float | None]]:
    """
    Raises:
        InvalidRequest: a quota is named twice.
    """
    changes: dict[str, float | None] = {}
    for op in ops:
        await checkpoint()
        changes[op.key] = None if op.remove else op.value
    if len(changes) < len(ops):
        # Kafka says the same of an entity that is there twice.
        raise InvalidRequest(f"Ignoring duplicate entity {_text(entity)}")
    return list(changes.items())


def _text(entity: ClientQuotaEntity) -> str:
    """
    An entity as Kafka prints it.
    """
    parts = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{parts}}})"


def _is_host(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        try:
            return bool(socket.getaddrinfo(name, None))
        except (OSError, UnicodeError):
            return False
    return True
