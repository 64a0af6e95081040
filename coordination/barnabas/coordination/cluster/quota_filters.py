"""
Filters of client quotas: the entities that a DescribeClientQuotas asks for (KIP-546; Kafka
``ClientQuotasImage``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum

from barnabas.coordination.cluster.client_quotas import (
    CLIENT_ID,
    ENTITY_TYPES,
    IP,
    USER,
    ClientQuotaEntity,
)
from barnabas.coordination.steps import checkpoint
from barnabas.protocol.errors import InvalidRequest, UnsupportedVersion
from barnabas.protocol.messages.describe_client_quotas import ComponentData


class MatchType(IntEnum):
    """
    The ways in which a filter matches the name of an entity.
    """

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2  # anything


async def filter_of(components: Iterable[ComponentData]) -> dict[str, ComponentData]:
    """
    The components of a filter, by the type of entity that each is about.

    Raises:
        InvalidRequest, UnsupportedVersion: no entity can be found so.
    """
    wanted: dict[str, ComponentData] = {}
    for component in components:
        _check(component, wanted)
        wanted[component.entity_type] = component
        await checkpoint()
    if IP in wanted and (USER in wanted or CLIENT_ID in wanted):
        raise InvalidRequest(
            "Invalid entity filter component combination. IP filter component should not be used"
            " with user or clientId filter component."
        )
    return wanted


def matches(
    entity: ClientQuotaEntity, wanted: Mapping[str, ComponentData], *, strict: bool
) -> bool:
    """
    Return True if an entity has all that a filter names, and nothing else if the filter is strict.
    """
    names = dict(entity)
    if strict and len(names) != len(wanted):
        return False
    return all(
        kind in names
        and (component.match_type == MatchType.SPECIFIED or names[kind] == component.match)
        for kind, component in wanted.items()
    )


def _check(component: ComponentData, earlier: Mapping[str, ComponentData]) -> None:
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
