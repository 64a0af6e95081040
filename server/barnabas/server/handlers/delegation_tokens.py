"""
CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken and DescribeDelegationToken
(KIP-48, KIP-373).

Only a client that has shown who it is, and not by a token, may send them.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.coordination.cluster.delegation_tokens import parties
from barnabas.coordination.security.acl.permissions import (
    CREATE_TOKENS,
    DESCRIBE_DELEGATION_TOKEN,
    DESCRIBE_TOKENS,
)
from barnabas.coordination.security.principal import (
    ANONYMOUS,
    USER,
    KafkaPrincipal,
    parse_principal,
)
from barnabas.coordination.steps import checkpoint, map_in_turns
from barnabas.coordination.text_memory import text_bytes
from barnabas.protocol.errors import ErrorCode, KafkaError, KafkaStorageError, UnknownServerError
from barnabas.protocol.internal_topics.metadata_records import DelegationTokenRecord
from barnabas.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from barnabas.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from barnabas.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from barnabas.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from barnabas.server.requests.authorization import NOTHING, asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles

NO_TIMESTAMP: Final = -1
"""
In an answer of Kafka's broker to a request that it does not pass on.
"""
UNSET: Final = 0
"""
Likewise of its controller.
"""


def _may_ask(context: RequestContext) -> bool:
    """
    Whether the client has shown who it is, and not by a token.
    """
    client = context.client
    is_known = client.listener.has_sasl or client.principal != ANONYMOUS
    return is_known and not client.is_token_authenticated


@handles(CreateDelegationTokenRequest, needs=asks(CREATE_TOKENS))
async def create_delegation_token(
    request: CreateDelegationTokenRequest, context: RequestContext
) -> CreateDelegationTokenResponse:
    requester = owner = context.client.principal
    if request.owner_principal_name:
        if request.owner_principal_type is None:
            raise UnknownServerError("The owner of the token has a name and no type")
        owner = KafkaPrincipal(request.owner_principal_type, request.owner_principal_name)
    renewers = await map_in_turns(_renewer, request.renewers)

    def refused(code: ErrorCode, timestamp: int) -> CreateDelegationTokenResponse:
        return CreateDelegationTokenResponse(
            error_code=code,
            principal_type=owner.type,
            principal_name=owner.name,
            token_requester_principal_type=requester.type,
            token_requester_principal_name=requester.name,
            issue_timestamp_ms=timestamp,
            expiry_timestamp_ms=timestamp,
            max_timestamp_ms=timestamp,
            token_id="",
            hmac=b"",
        )

    if not _may_ask(context):
        return refused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NO_TIMESTAMP)
    if owner != requester and not context.allows(CREATE_TOKENS, str(owner)):
        return refused(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, NO_TIMESTAMP)
    if any(renewer.type != USER for renewer in renewers):
        return refused(ErrorCode.INVALID_PRINCIPAL_TYPE, NO_TIMESTAMP)
    tokens = context.broker.delegation_tokens()
    try:
        token, secret = await tokens.create(owner, requester, renewers, request.max_lifetime_ms)
    except KafkaStorageError:
        raise
    except KafkaError as error:
        return refused(error.code, UNSET)
    return CreateDelegationTokenResponse(
        error_code=ErrorCode.NONE,
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=token.issue_timestamp,
        expiry_timestamp_ms=token.expiration_timestamp,
        max_timestamp_ms=token.max_timestamp,
        token_id=token.token_id,
        hmac=secret,
    )


def _renewer(asked: Any) -> KafkaPrincipal:
    return KafkaPrincipal(asked.principal_type, asked.principal_name)


@handles(RenewDelegationTokenRequest, needs=NOTHING)
async def renew_delegation_token(
    request: RenewDelegationTokenRequest, context: RequestContext
) -> RenewDelegationTokenResponse:
    if not _may_ask(context):
        return RenewDelegationTokenResponse(
            error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            expiry_timestamp_ms=NO_TIMESTAMP,
        )
    end = await context.broker.delegation_tokens().renew(
        bytes(request.hmac), context.client.principal, request.renew_period_ms
    )
    return RenewDelegationTokenResponse(error_code=ErrorCode.NONE, expiry_timestamp_ms=end)


@handles(ExpireDelegationTokenRequest, needs=NOTHING)
async def expire_delegation_token(
    request: ExpireDelegationTokenRequest, context: RequestContext
) -> ExpireDelegationTokenResponse:
    if not _may_ask(context):
        return ExpireDelegationTokenResponse(
            error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            expiry_timestamp_ms=NO_TIMESTAMP,
        )
    end = await context.broker.delegation_tokens().expire(
        bytes(request.hmac), context.client.principal, request.expiry_time_period_ms
    )
    return ExpireDelegationTokenResponse(error_code=ErrorCode.NONE, expiry_timestamp_ms=end)


@handles(DescribeDelegationTokenRequest, needs=asks(DESCRIBE_DELEGATION_TOKEN, DESCRIBE_TOKENS))
async def describe_delegation_token(
    request: DescribeDelegationTokenRequest, context: RequestContext
) -> DescribeDelegationTokenResponse:
    """
    List the tokens that the client owns, has created, may renew or is allowed to see: all, or those
    with which some of the principals asked for have to do likewise.
    """
    if not _may_ask(context):
        return DescribeDelegationTokenResponse(
            error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, tokens=[]
        )
    tokens = context.broker.delegation_tokens()
    if not tokens.is_enabled:
        return DescribeDelegationTokenResponse(
            error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, tokens=[]
        )
    wanted: set[str] | None = None
    if request.owners is not None:
        wanted = set()
        for owner in request.owners:
            await checkpoint()
            wanted.add(f"{owner.principal_type}:{owner.principal_name}")
    room = context.room()
    described = []
    for token in tokens.all():
        await checkpoint()
        if (wanted is None or not wanted.isdisjoint(parties(token))) and _sees(token, context):
            room.take(1 + len(token.renewers), sum(map(text_bytes, parties(token))))
            described.append(_describe(token, tokens.hmac_of(token.token_id)))
    return DescribeDelegationTokenResponse(error_code=ErrorCode.NONE, tokens=described)


def _sees(token: DelegationTokenRecord, context: RequestContext) -> bool:
    return (
        str(context.client.principal) in parties(token)
        or context.sees(DESCRIBE_DELEGATION_TOKEN, token.token_id)
        or context.sees(DESCRIBE_TOKENS, token.owner)
    )


def _describe(token: DelegationTokenRecord, secret: bytes) -> DescribedDelegationToken:
    owner, requester = parse_principal(token.owner), parse_principal(token.requester)
    return DescribedDelegationToken(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=secret,
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=it.type, principal_name=it.name)
            for it in map(parse_principal, token.renewers)
        ],
    )
