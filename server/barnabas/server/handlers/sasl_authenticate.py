"""
SaslAuthenticate: a client proves who it is (KIP-152, KIP-368).

A failure is answered only after ``connection.failed.authentication.delay.ms`` (KIP-306).
"""

from __future__ import annotations

from barnabas.coordination.security.sasl.credentials import NeedsWork
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas.server.requests.authenticating import (
    become_authenticated,
    evaluate_later,
    wait_after_failure,
)
from barnabas.server.requests.authorization import NOTHING
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.errors import AnswerAndClose
from barnabas.server.requests.registry import handles
from barnabas.server.security.errors import AuthenticationFailed


@handles(SaslAuthenticateRequest, needs=NOTHING)
async def sasl_authenticate(
    request: SaslAuthenticateRequest, context: RequestContext
) -> SaslAuthenticateResponse:
    authentication = context.client.authentication
    if authentication is None or not authentication.is_in_exchange:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
            auth_bytes=b"",
        )
    received = bytes(request.auth_bytes)
    try:
        try:
            token = authentication.evaluate(received)
        except NeedsWork as needed:
            token = await evaluate_later(needed, authentication, received, context.broker)
    except AuthenticationFailed as error:
        refused = error
    else:
        become_authenticated(context.client, context.broker)
        return SaslAuthenticateResponse(
            error_code=ErrorCode.NONE,
            error_message="",
            auth_bytes=token,
            session_lifetime_ms=authentication.session_lifetime_ms,
        )
    await wait_after_failure(context.client, context.broker)
    raise AnswerAndClose(
        f"it is not authenticated: {refused}",
        SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
            error_message=refused.message,
            auth_bytes=b"",
        ),
    )
