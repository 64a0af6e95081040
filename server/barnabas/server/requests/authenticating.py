"""
What clients may do before they are authenticated, and what they become then (Kafka
``SaslServerAuthenticator``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn

from barnabas.coordination.security.sasl.credentials import NeedsWork
from barnabas.protocol.errors import IllegalSaslState
from barnabas.server.requests.errors import CloseConnection
from barnabas.server.security.errors import AuthenticationFailed
from barnabas.server.security.sasl.authentication import Authentication, Verdict

if TYPE_CHECKING:
    from barnabas.protocol.codec.primitives import Buffer
    from barnabas.server.requests.broker_parts import BrokerParts
    from barnabas.server.requests.client import Client
    from barnabas.server.requests.context import RequestContext
    from barnabas.server.requests.errors import Outcome
    from barnabas.server.scheduling.turns import Work

_SIZE_BYTES: Final = 4


def check_allowed(
    authentication: Authentication, context: RequestContext, frame: memoryview, position: int
) -> None:
    """
    Let a request pass only if its client may ask it now.

    Raises:
        CloseConnection: it may not.
    """
    verdict = authentication.verdict(context.route.registration.key)
    if verdict is Verdict.PASS:
        return
    name = context.route.name
    if authentication.principal is not None and verdict is Verdict.CLOSE:
        raise CloseConnection(f"{name} after the end of its session")
    reason = f"{name} before it has authenticated"
    if verdict is Verdict.REFUSE:
        context.refuse(frame, position, IllegalSaslState(reason), reason)
    raise CloseConnection(reason)


def become_authenticated(client: Client, broker: BrokerParts) -> None:
    """
    Give the client the principal that it has proved to be, if it has.
    """
    authentication = client.authentication
    if authentication is None or authentication.principal is None or authentication.is_in_exchange:
        return
    client.principal = authentication.principal
    broker.metrics.counter(
        "authentications", "Clients that have authenticated.", listener=client.listener.name
    ).value += 1
    if authentication.is_final:
        client.authentication = None


async def wait_after_failure(client: Client, broker: BrokerParts) -> None:
    """
    Return when a client that has failed may hear of it (KIP-306).
    """
    broker.metrics.counter(
        "authentications_failed",
        "Clients that failed to authenticate.",
        listener=client.listener.name,
    ).value += 1
    await broker.clock.sleep(broker.security.failure_delay_s(client.listener))


def serve_raw_token(
    frame: memoryview, client: Client, broker: BrokerParts
) -> list[Buffer] | tuple[RawToken, Work[Any]]:
    """
    The answer to a token that came as a frame without a header, as after SaslHandshake v0.
    """
    authentication = client.authentication
    assert authentication is not None, "the client authenticates itself"
    received = bytes(frame)
    try:
        token = authentication.evaluate(received)
    except NeedsWork as needed:
        later = _answer_later(needed, authentication, received, client, broker)
        return RawToken(), broker.turns.start(later)
    except AuthenticationFailed as error:
        return RawToken(), broker.turns.start(_close_later(error, client, broker))
    become_authenticated(client, broker)
    return [_raw(token)]


def _raw(token: bytes) -> bytes:
    return len(token).to_bytes(_SIZE_BYTES) + token


async def evaluate_later(
    needed: NeedsWork, authentication: Authentication, token: bytes, broker: BrokerParts
) -> bytes:
    """
    Do the work in a thread, and evaluate the token once more.

    Raises:
        AuthenticationFailed: as ``Authentication.evaluate``.
    """
    await broker.workers.in_changes(needed.work)
    return authentication.evaluate(token)


async def _answer_later(
    needed: NeedsWork,
    authentication: Authentication,
    token: bytes,
    client: Client,
    broker: BrokerParts,
) -> list[Buffer]:
    try:
        answer = await evaluate_later(needed, authentication, token, broker)
    except AuthenticationFailed as error:
        await _close_later(error, client, broker)
    become_authenticated(client, broker)
    return [_raw(answer)]


class RawToken:
    """
    A token that takes a while: if it has failed, the connection is closed without an answer.
    """

    held_bytes = 0
    effects = None
    on_effects: Callable[[], None] | None = None
    on_answered: Callable[[], None] | None = None

    def buffers(self, outcome: Outcome) -> list[Buffer] | None:
        """
        Raises:
            CloseConnection: the outcome is no answer.
        """
        if isinstance(outcome, list):
            return outcome
        raise CloseConnection(str(outcome))

    def answered(self) -> None:
        pass


async def _close_later(
    error: AuthenticationFailed, client: Client, broker: BrokerParts
) -> NoReturn:
    await wait_after_failure(client, broker)
    raise CloseConnection(f"it is not authenticated: {error}")
