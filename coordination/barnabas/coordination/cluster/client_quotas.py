"""
Client quotas in the metadata: their entities, their keys and their changes (KIP-546; Kafka's
``ClientQuotaControlManager``).

An entity is a user, a client id, both, or an address; the name ``None`` is the default of its type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from barnabas.coordination.cluster.image import MetadataImage, Versioned
from barnabas.protocol.errors import InvalidRequest
from barnabas.protocol.internal_topics.metadata_records import ClientQuotaRecord, EntityData
from barnabas.protocol.structs import NamedTuple
from barnabas.storage.units import INT_MAX, LONG_MAX

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
ENTITY_TYPES: Final = (USER, CLIENT_ID, IP)

ClientQuotaEntity: TypeAlias = tuple[tuple[str, str | None], ...]
"""
The types and names of a quota's entity, each type once.
"""


class _Range(NamedTuple):
    type: str
    largest: float
    is_integral: bool = True


_USER_QUOTAS: Final = {
    "consumer_byte_rate": _Range("LONG", LONG_MAX),
    "controller_mutation_rate": _Range("DOUBLE", float("inf"), is_integral=False),
    "producer_byte_rate": _Range("LONG", LONG_MAX),
    "request_percentage": _Range("DOUBLE", float("inf"), is_integral=False),
}
_IP_QUOTAS: Final = {"connection_creation_rate": _Range("INT", INT_MAX)}
_SMALLEST_FRACTION: Final = 1e-6


def entity_of(parts: Mapping[str, str | None]) -> ClientQuotaEntity:
    """
    The entity of these names by type, sorted by type.
    """
    return tuple(sorted(parts.items()))


def client_quotas(image: MetadataImage) -> dict[ClientQuotaEntity, dict[str, float]]:
    """
    All quotas: the values by key, by entity.
    """
    found: dict[ClientQuotaEntity, dict[str, float]] = {}
    for record in image.kept.of_type(ClientQuotaRecord):
        assert isinstance(record, ClientQuotaRecord)
        found.setdefault(entity_of(names_of(record)), {})[record.key] = record.value
    return found


def names_of(record: ClientQuotaRecord) -> dict[str, str | None]:
    """
    The entity of a record: its names by type.
    """
    return {part.entity_type: part.entity_name for part in record.entity}


def value_of(record: ClientQuotaRecord) -> float | None:
    """
    The value that a record sets; None if it removes the quota.
    """
    return None if record.remove else record.value


def quota_records(
    entity: ClientQuotaEntity,
    changes: Sequence[tuple[str, float | None]],
    there: Mapping[str, float],
    is_host: Callable[[str], bool],
) -> list[Versioned]:
    """
    The records that change the quotas of *entity*.

    Args:
        changes: keys and values; ``None`` removes the quota.
        there: the current quotas of the entity.
        is_host: returns whether a name is an address or can be resolved to one.

    Raises:
        InvalidRequest: the entity or a quota is invalid.
    """
    allowed = _allowed(entity, is_host)
    made: list[Versioned] = []
    for key, value in changes:
        if value is None:
            if key not in there:
                continue
        else:
            _check(key, value, allowed)
            if there.get(key) == value:
                continue
        record = ClientQuotaRecord(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            key=key,
            value=0.0 if value is None else value,
            remove=value is None,
        )
        made.append((record, 0))
    return made


def _allowed(entity: ClientQuotaEntity, is_host: Callable[[str], bool]) -> Mapping[str, _Range]:
    """
    The quotas that *entity* may have.

    Raises:
        InvalidRequest: the entity is invalid.
    """
    if not entity:
        raise InvalidRequest("Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in ENTITY_TYPES:
            raise InvalidRequest(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise InvalidRequest(f"Empty {kind} not supported")
    names = dict(entity)
    if IP not in names:
        return _USER_QUOTAS
    if len(names) > 1:
        # Kafka's sentence lacks the same blank.
        raise InvalidRequest(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or"
            " ClientId"
        )
    address = names[IP]
    if address is not None and not is_host(address):
        raise InvalidRequest(f"{address} is not a valid IP or resolvable host.")
    return _IP_QUOTAS


def _check(key: str, value: float, allowed: Mapping[str, _Range]) -> None:
    """
    Raises:
        InvalidRequest: the quota *key* does not exist, or cannot have *value*.
    """
    bounds = allowed.get(key)
    if bounds is None:
        raise InvalidRequest(f"Invalid configuration key {key}")
    if value <= 0:
        raise InvalidRequest(f"Quota {key} must be greater than 0")
    if value > bounds.largest:
        article = "an" if bounds.type == "INT" else "a"
        raise InvalidRequest(f"Proposed value for {key} is too large for {article} {bounds.type}.")
    if bounds.is_integral and value % 1.0 > _SMALLEST_FRACTION:
        raise InvalidRequest(f"{key} cannot be a fractional value.")
