"""
SaslHandshake: a client chooses the mechanism by which it authenticates itself (KIP-43, KIP-152).
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.server.requests.authenticating import wait_after_failure
from barnabas.server.requests.authorization import NOTHING
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.errors import AnswerAndClose
from barnabas.server.requests.registry import handles


@handles(SaslHandshakeRequest, needs=NOTHING)
async def sasl_handshake(
    request: SaslHandshakeRequest, context: RequestContext
) -> SaslHandshakeResponse:
    authentication = context.client.authentication
    if authentication is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
    code = authentication.begin(request.mechanism, context.version)
    if code is ErrorCode.ILLEGAL_SASL_STATE:
        return SaslHandshakeResponse(error_code=code, mechanisms=[])
    response = SaslHandshakeResponse(error_code=code, mechanisms=authentication.mechanisms)
    if code is ErrorCode.NONE:
        return response
    await wait_after_failure(context.client, context.broker)
    raise AnswerAndClose(
        f"it asks for the SASL mechanism {request.mechanism!r}, and the listener has"
        f" {', '.join(response.mechanisms)}",
        response,
    )
