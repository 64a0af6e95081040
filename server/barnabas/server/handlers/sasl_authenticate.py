"""
SaslAuthenticate: a client proves who it is (KIP-152, KIP-368).

A failure is answered only after ``connection.failed.authentication.delay.ms`` (KIP-306).
"""

from __future__ import annotations

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
from barnabas.server.requests.registry import Answer, handles
from barnabas.server.security.errors import AuthenticationFailed
from barnabas.server.security.sasl.authentication import Authentication
from barnabas.server.security.sasl.mechanism import NeedsWork


@handles(SaslAuthenticateRequest, needs=NOTHING)
def sasl_authenticate(request: SaslAuthenticateRequest, context: RequestContext) -> Answer:
    authentication = context.client.authentication
    if authentication is None or not authentication.is_in_exchange:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
            auth_bytes=b"",
        )
    received = bytes(request.auth_bytes)
    try:
        token = authentication.evaluate(received)
    except NeedsWork as needed:
        return _answer_later(needed, authentication, received, context)
    except AuthenticationFailed as error:
        return _refuse(error, context)
    return _answer(token, authentication, context)


def _answer(
    token: bytes, authentication: Authentication, context: RequestContext
) -> SaslAuthenticateResponse:
    become_authenticated(context.client, context.broker)
    return SaslAuthenticateResponse(
        error_code=ErrorCode.NONE,
        error_message="",
        auth_bytes=token,
        session_lifetime_ms=authentication.session_lifetime_ms,
    )


async def _answer_later(
    needed: NeedsWork, authentication: Authentication, received: bytes, context: RequestContext
) -> SaslAuthenticateResponse:
    try:
        token = await evaluate_later(needed, authentication, received, context.broker)
    except AuthenticationFailed as error:
        return await _refuse(error, context)
    return _answer(token, authentication, context)


async def _refuse(error: AuthenticationFailed, context: RequestContext) -> SaslAuthenticateResponse:
    await wait_after_failure(context.client, context.broker)
    raise AnswerAndClose(
        f"it is not authenticated: {error}",
        SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
            error_message=error.message,
            auth_bytes=b"",
        ),
    )
