"""
Client quotas are set and taken away (KIP-546; Kafka ``ClientQuotaControlManager``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from barnabas.coordination.cluster.client_quotas import (
    ClientQuotaEntity,
    client_quotas,
    quota_records,
)
from barnabas.coordination.cluster.image import MetadataImage, Versioned
from barnabas.coordination.cluster.metadata_writer import MetadataWriter
from barnabas.coordination.cluster.request_limits import check_size
from barnabas.coordination.steps import checkpoint
from barnabas.protocol.errors import InvalidRequest, KafkaError, without_frames

QuotaChange: TypeAlias = tuple[str, float | None]
"""
The key of a quota and its value, None to take it away.
"""
EntityChanges: TypeAlias = tuple[ClientQuotaEntity, Sequence[QuotaChange]]


async def alter(
    controller: MetadataWriter,
    asked: Sequence[EntityChanges],
    is_host: Callable[[str], bool],
    *,
    validate_only: bool,
) -> dict[ClientQuotaEntity, KafkaError | None]:
    """
    Change the quotas of each entity, or say why not. One that is named twice is changed once, and
    told so.

    Args:
        is_host: returns whether a name is an address or can be resolved to one.

    Returns:
        The error of each entity, None if there is none.

    Raises:
        PolicyViolation: there are too many changes.
        KafkaStorageError: the metadata log cannot be written.
    """
    return await controller.change_by(
        lambda made: _alteration(controller.image, asked, is_host, made),
        validate_only=validate_only,
    )


async def _alteration(
    image: MetadataImage,
    asked: Sequence[EntityChanges],
    is_host: Callable[[str], bool],
    made: list[Versioned],
) -> dict[ClientQuotaEntity, KafkaError | None]:
    outcomes: dict[ClientQuotaEntity, KafkaError | None] = {}
    there = client_quotas(image)
    for entity, changes in asked:
        await checkpoint()
        if entity in outcomes:
            outcomes[entity] = InvalidRequest(f"Ignoring duplicate entity {_text(entity)}")
            continue
        try:
            values = await _values(entity, changes)
            made += quota_records(entity, values, there.get(entity, {}), is_host)
            outcomes[entity] = None
        except KafkaError as error:
            outcomes[entity] = without_frames(error)
    check_size(made)
    return outcomes


async def _values(entity: ClientQuotaEntity, changes: Sequence[QuotaChange]) -> list[QuotaChange]:
    """
    Raises:
        InvalidRequest: a quota is named twice.
    """
    values: dict[str, float | None] = {}
    for key, value in changes:
        await checkpoint()
        values[key] = value
    if len(values) < len(changes):
        # Kafka says the same of an entity that is there twice.
        raise InvalidRequest(f"Ignoring duplicate entity {_text(entity)}")
    return list(values.items())


def _text(entity: ClientQuotaEntity) -> str:
    """
    An entity as Kafka prints it.
    """
    parts = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{parts}}})"
