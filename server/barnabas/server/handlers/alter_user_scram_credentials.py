"""
AlterUserScramCredentials: sets and removes what users authenticate with (KIP-554; Kafka
``ScramControlManager``).
"""

from __future__ import annotations

from typing import TypeAlias

from barnabas.protocol.errors import (
    DuplicateResource,
    ErrorCode,
    KafkaError,
    ResourceNotFound,
    UnknownServerError,
    UnsupportedVersion,
)
from barnabas.protocol.internal_topics.metadata_records import RemoveUserScramCredentialRecord
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.server.cluster.controller import MAX_RECORDS_PER_REQUEST
from barnabas.server.cluster.features import SCRAM_SINCE
from barnabas.server.cluster.image import MetadataImage, Versioned
from barnabas.server.cluster.scram_credentials import (
    check_iterations,
    check_user,
    credential_record,
    scram_credentials,
)
from barnabas.server.requests.authorization import gate
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import checkpoint
from barnabas.server.security.acl.permissions import ALTER_CLUSTER

ScramChange: TypeAlias = ScramCredentialDeletion | ScramCredentialUpsertion


@handles(AlterUserScramCredentialsRequest, needs=gate(ALTER_CLUSTER))
async def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, context: RequestContext
) -> AlterUserScramCredentialsResponse:
    """
    Change the credentials of each user, or say why not; one user can be changed once.
    """
    wanted: list[ScramChange] = [*request.deletions, *request.upsertions]

    async def plan(made: list[Versioned]) -> list[AlterUserScramCredentialsResult]:
        results: dict[str, AlterUserScramCredentialsResult] = {}
        records: dict[str, Versioned] = {}
        for change in wanted:
            await checkpoint()
            if change.name in results and change.name not in records:
                continue  # the first error of a user is told
            result = AlterUserScramCredentialsResult(user=change.name, error_code=ErrorCode.NONE)
            try:
                if records.pop(change.name, None) is not None:
                    raise DuplicateResource(
                        "A user credential cannot be altered twice in the same request"
                    )
                records[change.name] = _record(change, context.broker.image)
            except KafkaError as error:
                result = AlterUserScramCredentialsResult(
                    user=change.name, error_code=error.code, error_message=str(error)
                )
            results[change.name] = result
        made += records.values()
        return list(results.values())

    async def alter() -> list[AlterUserScramCredentialsResult]:
        made: list[Versioned] = []
        results = await context.broker.turns.finish(plan(made))
        if len(made) > MAX_RECORDS_PER_REQUEST:
            raise UnknownServerError(
                f"Attempted to atomically commit {len(made)} records, but no more than"
                f" {MAX_RECORDS_PER_REQUEST} are possible"
            )
        await context.broker.controller.write(made)
        return results

    return AlterUserScramCredentialsResponse(results=await context.broker.controller.change(alter))


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
