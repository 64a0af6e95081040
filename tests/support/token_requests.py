"""
Requests for delegation tokens.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.coordination.security.principal import parse_principal
from barnabas.protocol.codec.schema import Message
from tests.support.build import api_request


def new_token(*renewers: str, owner: str | None = None, lifetime_ms: int = -1) -> Message:
    """
    Request a token for *owner*, by default the requester. Principals are written as ``type:name``.
    """
    of = {}
    if owner is not None:
        kind, name = parse_principal(owner)
        of = {"owner_principal_type": kind, "owner_principal_name": name}
    return api_request(
        "create_delegation_token", **of, renewers=_principals(renewers), max_lifetime_ms=lifetime_ms
    )


def renewal(secret: bytes, period_ms: int = -1) -> Message:
    return api_request("renew_delegation_token", hmac=secret, renew_period_ms=period_ms)


def expiry(secret: bytes, period_ms: int = -1) -> Message:
    return api_request("expire_delegation_token", hmac=secret, expiry_time_period_ms=period_ms)


def tokens_of(owners: Iterable[str] | None = None) -> Message:
    named = None if owners is None else _principals(owners)
    return api_request("describe_delegation_token", owners=named)


def _principals(names: Iterable[str]) -> list[dict[str, str]]:
    return [
        {"principal_type": kind, "principal_name": name}
        for kind, name in map(parse_principal, names)
    ]
