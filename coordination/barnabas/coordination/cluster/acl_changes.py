"""
Access control entries are added and removed (Kafka ``AclControlManager``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from barnabas.coordination.cluster.image import Versioned, acl_record
from barnabas.coordination.cluster.metadata_writer import MetadataWriter
from barnabas.coordination.cluster.request_limits import MAX_RECORDS_PER_REQUEST, check_size
from barnabas.coordination.security.acl.acls import Acls
from barnabas.coordination.security.acl.bindings import (
    CLUSTER_NAME,
    AclBinding,
    AclBindingFilter,
    ResourceType,
)
from barnabas.coordination.steps import checkpoint
from barnabas.protocol.errors import InvalidRequest, KafkaError
from barnabas.protocol.internal_topics.metadata_records import RemoveAccessControlEntryRecord
from barnabas.storage.uuids import random_uuid


def check_new(entry: AclBinding) -> None:
    """
    Raises:
        InvalidRequest: there can be no such entry.
    """
    reason = entry.reason_invalid()
    if reason is not None:
        raise InvalidRequest(reason)
    if entry.resource_type == ResourceType.CLUSTER and entry.resource_name != CLUSTER_NAME:
        raise InvalidRequest(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")


def check_filter(wanted: AclBindingFilter) -> None:
    """
    Raises:
        InvalidRequest: the filter has a number that stands for nothing.
    """
    reason = wanted.reason_invalid()
    if reason is not None:
        raise InvalidRequest(reason)


async def create(
    controller: MetadataWriter, entries: Sequence[AclBinding]
) -> list[KafkaError | None]:
    """
    Add entries, as ``creation`` plans it.

    Raises:
        KafkaStorageError: the metadata log cannot be written.
    """
    return await controller.change_by(lambda made: creation(controller.image.acls, entries, made))


async def delete(
    controller: MetadataWriter,
    filters: Sequence[AclBindingFilter],
    found_one: Callable[[AclBinding], None],
) -> list[list[AclBinding] | KafkaError]:
    """
    Remove entries, as ``deletion`` plans it.

    Raises:
        KafkaStorageError: the metadata log cannot be written.
    """
    return await controller.change_by(
        lambda made: deletion(controller.image.acls, filters, made, found_one)
    )


async def creation(
    acls: Acls, entries: Sequence[AclBinding], made: list[Versioned]
) -> list[KafkaError | None]:
    """
    Plan new entries. One that is there already, or is asked for twice, is made once.

    Args:
        made: gets the records.

    Returns:
        For each entry, why it cannot be made.

    Raises:
        PolicyViolation: there are too many.
    """
    outcomes: list[KafkaError | None] = []
    new: set[AclBinding] = set()
    for entry in entries:
        await checkpoint()
        try:
            check_new(entry)
        except InvalidRequest as error:
            outcomes.append(error.with_traceback(None))
            continue
        outcomes.append(None)
        if entry not in acls and entry not in new:
            new.add(entry)
            made.append(acl_record(_unused_id(acls), entry))
    check_size(made)
    return outcomes


def _unused_id(acls: Acls) -> UUID:
    while acls.has_id(acl_id := random_uuid()):
        pass
    return acl_id


async def deletion(
    acls: Acls,
    filters: Sequence[AclBindingFilter],
    made: list[Versioned],
    found_one: Callable[[AclBinding], None],
) -> list[list[AclBinding] | KafkaError]:
    """
    Plan the removal of all entries that *filters* mean.

    Args:
        made: gets the records.
        found_one: called with each entry for each filter that means it; what it raises ends the
            plan.

    Returns:
        For each filter, the entries, also those that an earlier filter means; or its error.

    Raises:
        InvalidRequest: they mean too many.
        PolicyViolation: there are too many filters.
    """
    check_size(filters)
    outcomes: list[list[AclBinding] | KafkaError] = []
    there = acls.items()
    removed: set[UUID] = set()
    for wanted in filters:
        try:
            check_filter(wanted)
        except InvalidRequest as error:
            outcomes.append(error.with_traceback(None))
            await checkpoint()
            continue
        found = []
        for acl_id, entry in there:
            await checkpoint()
            if not wanted.matches(entry):
                continue
            found_one(entry)
            found.append(entry)
            if acl_id not in removed:
                removed.add(acl_id)
                made.append((RemoveAccessControlEntryRecord(id=acl_id), 0))
                if len(removed) > MAX_RECORDS_PER_REQUEST:
                    raise InvalidRequest(
                        f"Cannot remove more than {MAX_RECORDS_PER_REQUEST} acls in a single"
                        " delete operation."
                    )
        outcomes.append(found)
        await checkpoint()
    return outcomes
