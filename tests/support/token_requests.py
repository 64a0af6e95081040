"""
Requests for delegation tokens.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from barnabas.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from barnabas.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from barnabas.server.security.principal import parse_principal


def new_token(
    *renewers: str, owner: str | None = None, lifetime_ms: int = -1
) -> CreateDelegationTokenRequest:
    """
    A token of this *owner*, or of who asks. Principals are written as ``type:name``.
    """
    of = {}
    if owner is not None:
        kind, name = parse_principal(owner)
        of = {"owner_principal_type": kind, "owner_principal_name": name}
    return CreateDelegationTokenRequest(
        **of,
        renewers=[
            CreatableRenewers(principal_type=kind, principal_name=name)
            for kind, name in map(parse_principal, renewers)
        ],
        max_lifetime_ms=lifetime_ms,
    )


def renewal(secret: bytes, period_ms: int = -1) -> RenewDelegationTokenRequest:
    return RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period_ms)


def expiry(secret: bytes, period_ms: int = -1) -> ExpireDelegationTokenRequest:
    return ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period_ms)


def tokens_of(owners: Iterable[str] | None = None) -> DescribeDelegationTokenRequest:
    """
    The tokens of *owners*, or of all.
    """
    named = None
    if owners is not None:
        named = [
            DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
            for kind, name in map(parse_principal, owners)
        ]
    return DescribeDelegationTokenRequest(owners=named)
