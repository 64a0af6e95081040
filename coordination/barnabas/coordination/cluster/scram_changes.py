"""
SCRAM credentials are set and removed (KIP-554; Kafka ``ScramControlManager``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from barnabas.coordination.cluster.features import SCRAM_SINCE
from barnabas.coordination.cluster.image import MetadataImage, Versioned
from barnabas.coordination.cluster.metadata_writer import MetadataWriter
from barnabas.coordination.cluster.request_limits import MAX_RECORDS_PER_REQUEST
from barnabas.coordination.cluster.scram_credentials import (
    check_iterations,
    check_user,
    credential_record,
    scram_credentials,
)
from barnabas.coordination.steps import checkpoint
from barnabas.protocol.errors import (
    DuplicateResource,
    KafkaError,
    ResourceNotFound,
    UnknownServerError,
    UnsupportedVersion,
    without_frames,
)
from barnabas.protocol.internal_topics.metadata_records import RemoveUserScramCredentialRecord
from barnabas.protocol.messages.alter_user_scram_credentials import (
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

ScramChange: TypeAlias = ScramCredentialDeletion | ScramCredentialUpsertion


async def alter(
    controller: MetadataWriter, changes: Sequence[ScramChange]
) -> dict[str, KafkaError | None]:
    """
    Change the credentials of each user, or say why not; one user can be changed once.

    Returns:
        The error of each user, None if there is none.

    Raises:
        UnknownServerError: there are too many.
        KafkaStorageError: the metadata log cannot be written.
    """
    return await controller.change_by(lambda made: alteration(controller.image, changes, made))


async def alteration(
    image: MetadataImage, changes: Sequence[ScramChange], made: list[Versioned]
) -> dict[str, KafkaError | None]:
    """
    Plan the changes, as ``alter`` makes them.

    Args:
        made: gets the records.

    Raises:
        UnknownServerError: there are too many.
    """
    outcomes: dict[str, KafkaError | None] = {}
    records: dict[str, Versioned] = {}
    for change in changes:
        await checkpoint()
        if change.name in outcomes and change.name not in records:
            continue  # the first error of a user is told
        outcomes[change.name] = None
        try:
            if records.pop(change.name, None) is not None:
                raise DuplicateResource(
                    "A user credential cannot be altered twice in the same request"
                )
            records[change.name] = _record(change, image)
        except KafkaError as error:
            outcomes[change.name] = without_frames(error)
    made += records.values()
    if len(made) > MAX_RECORDS_PER_REQUEST:
        raise UnknownServerError(
            f"Attempted to atomically commit {len(made)} records, but no more than"
            f" {MAX_RECORDS_PER_REQUEST} are possible"
        )
    return outcomes


def _record(change: ScramChange, image: MetadataImage) -> Versioned:
    """
    The record that makes *change*.

    Raises:
        KafkaError: it cannot be made.
    """
    if image.metadata_version < SCRAM_SINCE:
        raise UnsupportedVersion("The current metadata.version does not support SCRAM")
    check_user(change.name, change.mechanism)
    if isinstance(change, ScramCredentialUpsertion):
        check_iterations(change.iterations)
        record = credential_record(
            change.name,
            change.mechanism,
            salt=change.salt,
            salted_password=change.salted_password,
            iterations=change.iterations,
        )
        return record, 0
    if change.mechanism not in scram_credentials(image).get(change.name, {}):
        raise ResourceNotFound("Attempt to delete a user credential that does not exist")
    return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism), 0
