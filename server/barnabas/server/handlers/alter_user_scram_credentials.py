"""
AlterUserScramCredentials: sets and removes what users authenticate with (KIP-554).
"""

from __future__ import annotations

from barnabas.coordination.cluster import scram_changes
from barnabas.coordination.cluster.scram_changes import ScramChange
from barnabas.coordination.security.acl.permissions import ALTER_CLUSTER
from barnabas.coordination.steps import map_in_turns
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from barnabas.server.requests.authorization import gate
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles


@handles(AlterUserScramCredentialsRequest, needs=gate(ALTER_CLUSTER))
async def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, context: RequestContext
) -> AlterUserScramCredentialsResponse:
    changes: list[ScramChange] = [*request.deletions, *request.upsertions]
    outcomes = await scram_changes.alter(context.broker.controller, changes)
    results = await map_in_turns(_result, outcomes.items())
    return AlterUserScramCredentialsResponse(results=results)


def _result(outcome: tuple[str, KafkaError | None]) -> AlterUserScramCredentialsResult:
    user, error = outcome
    if error is None:
        return AlterUserScramCredentialsResult(user=user, error_code=ErrorCode.NONE)
    return AlterUserScramCredentialsResult(
        user=user, error_code=error.code, error_message=str(error)
    )
