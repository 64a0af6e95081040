"""
DescribeUserScramCredentials: the mechanisms for which users have credentials (KIP-554; Kafka
``ScramImage``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from barnabas.coordination.cluster.scram_credentials import scram_credentials
from barnabas.coordination.security.acl.permissions import DESCRIBE_CLUSTER
from barnabas.coordination.steps import checkpoint
from barnabas.coordination.text_memory import text_bytes
from barnabas.protocol.errors import DuplicateResource, ErrorCode, KafkaError, ResourceNotFound
from barnabas.protocol.internal_topics.metadata_records import UserScramCredentialRecord
from barnabas.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from barnabas.server.requests.authorization import gate
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles


@handles(DescribeUserScramCredentialsRequest, needs=gate(DESCRIBE_CLUSTER))
async def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    """
    The users that are asked for, or all.
    """
    there = scram_credentials(context.broker.image)
    times = Counter(user.name for user in request.users or ()) or Counter(list(there))
    room = context.room()
    results = []
    for name, count in times.items():
        await checkpoint()
        room.take(3, text_bytes(name))
        try:
            if count > 1:
                raise DuplicateResource(
                    "Cannot describe SCRAM credentials for the same user twice in a single"
                    f" request: {name}"
                )
            results.append(_describe(name, there))
        except KafkaError as error:
            results.append(
                DescribeUserScramCredentialsResult(
                    user=name, error_code=error.code, error_message=str(error), credential_infos=[]
                )
            )
    return DescribeUserScramCredentialsResponse(
        error_code=ErrorCode.NONE,
        error_message="",  # Kafka answers so, not with null; for users as well.
        results=results,
    )


def _describe(
    name: str, there: Mapping[str, Mapping[int, UserScramCredentialRecord]]
) -> DescribeUserScramCredentialsResult:
    credentials = there.get(name)
    if credentials is None:
        raise ResourceNotFound(f"Attempt to describe a user credential that does not exist: {name}")
    return DescribeUserScramCredentialsResult(
        user=name,
        error_code=ErrorCode.NONE,
        error_message="",
        credential_infos=[
            CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
            for mechanism, credential in sorted(credentials.items())
        ],
    )
