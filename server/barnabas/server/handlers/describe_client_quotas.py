"""
DescribeClientQuotas: the quotas of the entities that match a filter (KIP-546; Kafka
``ClientQuotasImage``).
"""

from __future__ import annotations

from enum import IntEnum

from barnabas.protocol.errors import ErrorCode, InvalidRequest, UnsupportedVersion
from barnabas.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from barnabas.server.cluster.client_quotas import (
    CLIENT_ID,
    ENTITY_TYPES,
    IP,
    USER,
    ClientQuotaEntity,
    client_quotas,
)
from barnabas.server.requests.authorization import gate
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import checkpoint
from barnabas.server.security.acl.permissions import DESCRIBE_CONFIGS_CLUSTER
from barnabas.server.text_memory import text_bytes


class MatchType(IntEnum):
    """
    What the name of an entity has to be.
    """

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2  # anything


@handles(DescribeClientQuotasRequest, needs=gate(DESCRIBE_CONFIGS_CLUSTER))
async def describe_client_quotas(
    request: DescribeClientQuotasRequest, context: RequestContext
) -> DescribeClientQuotasResponse:
    """
    Entities that have all that the filter names; if it is strict, nothing else besides.
    """
    wanted: dict[str, ComponentData] = {}
    for component in request.components:
        _check(component, wanted)
        wanted[component.entity_type] = component
        await checkpoint()
    if IP in wanted and (USER in wanted or CLIENT_ID in wanted):
        raise InvalidRequest(
            "Invalid entity filter component combination. IP filter component should not be used"
            " with user or clientId filter component."
        )
    room = context.room()
    entries = room.list()
    for entity, quotas in client_quotas(context.broker.image).items():
        await checkpoint()
        if _matches(entity, wanted, strict=request.strict):
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


def _check(component: ComponentData, earlier: dict[str, ComponentData]) -> None:
    """
    Raises:
        InvalidRequest, UnsupportedVersion: no entity can be found so.
    """
    kind = component.entity_type
    if not kind:
        raise InvalidRequest("Invalid empty entity type.")
    if kind in earlier:
        raise InvalidRequest(f"Entity type {kind} cannot appear more than once in the filter.")
    if kind not in ENTITY_TYPES:
        raise UnsupportedVersion(f"Unsupported entity type {kind}")
    if component.match_type not in list(MatchType):
        raise InvalidRequest(f"Unknown match type {component.match_type}")
    match = MatchType(component.match_type)
    if match is MatchType.EXACT:
        if component.match is None:
            raise InvalidRequest(
                "Request specified MATCH_TYPE_EXACT, but set match string to null."
            )
    elif component.match is not None:
        raise InvalidRequest(
            f"Request specified MATCH_TYPE_{match.name}, but also specified a match string."
        )


def _matches(entity: ClientQuotaEntity, wanted: dict[str, ComponentData], *, strict: bool) -> bool:
    names = dict(entity)
    if strict and len(names) != len(wanted):
        return False
    return all(
        kind in names
        and (component.match_type == MatchType.SPECIFIED or names[kind] == component.match)
        for kind, component in wanted.items()
    )
