"""
Delegation tokens in the metadata: secrets that authenticate clients for their owners (KIP-48, Kafka
``DelegationTokenControlManager``).

A token is a record with an id, an owner and times. Its secret is a HMAC of the id, by a key that
only brokers know, so that no secret is stored; the client knows both and uses them as a name and a
password of SCRAM.
"""

from __future__ import annotations

import base64
import hmac
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from sys import getsizeof
from typing import Final, NamedTuple

from barnabas.coordination.cluster.features import DELEGATION_TOKENS_SINCE
from barnabas.coordination.cluster.image import Versioned
from barnabas.coordination.cluster.metadata_writer import MetadataWriter
from barnabas.coordination.security.principal import USER, KafkaPrincipal, parse_principal
from barnabas.coordination.security.sasl.credentials import (
    NeedsWork,
    TokenLogin,
    derived_credential,
)
from barnabas.coordination.security.sasl.decoys import Decoys, ScramCredential
from barnabas.coordination.steps import checkpoint, map_in_turns
from barnabas.protocol.errors import (
    DelegationTokenAuthDisabled,
    DelegationTokenExpired,
    DelegationTokenNotFound,
    DelegationTokenOwnerMismatch,
    PolicyViolation,
    UnsupportedVersion,
)
from barnabas.protocol.internal_topics.metadata_records import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
)
from barnabas.protocol.structs import replace
from barnabas.storage.clock import Clock
from barnabas.storage.units import LONG_MAX
from barnabas.storage.uuids import random_uuid, uuid_text

logger = logging.getLogger(__name__)

MAX_TOKEN_BYTES: Final = 64 * 1024 * 1024
"""The memory for all tokens together."""
MAX_TOKEN_BYTES_OF_A_REQUESTER: Final = 8 * 1024 * 1024
"""The memory for the tokens that one principal has requested, for itself or for others."""
TOKEN_BYTES: Final = 2_600
"""The memory for a token beside its principals, with its secret and its credentials."""
_PRINCIPAL_BYTES: Final = 8  # in the list of renewers

LAST_TIMESTAMP: Final = LONG_MAX
"""
No timestamp is later.
"""


class TokenLifetimes(NamedTuple):
    """
    How long tokens are valid.
    """

    max_ms: int
    """``delegation.token.max.lifetime.ms``: no renewal goes beyond this."""
    renewal_ms: int
    """``delegation.token.expiry.time.ms``: a creation and a renewal are good for this."""


class DelegationTokens:
    """
    The delegation tokens of a cluster.

    Invariants:

    1. The records in the image are the tokens; everything else here can be derived from them.
    2. Whatever has an entry in ``_hmacs``, ``_ids``, ``_credentials`` or ``_sizes`` is a token in
       the image.

    Used on the event loop's thread only.
    """

    def __init__(
        self,
        controller: MetadataWriter,
        clock: Clock,
        secret_key: str,
        lifetimes: TokenLifetimes,
        decoys: Callable[[], Decoys],
    ) -> None:
        """
        Args:
            secret_key: the key of all HMACs; empty if there are to be no tokens.
            decoys: have the salts of tokens, which are those of tokens that do not exist, too.
        """
        self._controller = controller
        self._image = controller.image
        self._clock = clock
        self._key = secret_key.encode()
        self._lifetimes = lifetimes
        self._decoys = decoys
        self._hmacs: dict[str, bytes] = {}
        self._ids: dict[bytes, str] = {}
        self._credentials: dict[str, dict[str, ScramCredential]] = {}
        """By token id and mechanism."""
        self._sizes: dict[str, tuple[str, int]] = {}
        """The requester and the memory of each token."""
        self._used: Counter[str] = Counter()
        """The memory of the tokens of each requester."""

    @property
    def is_enabled(self) -> bool:
        """
        Whether there can be tokens.
        """
        return bool(self._key)

    def all(self) -> list[DelegationTokenRecord]:
        """
        All tokens, also those that have expired and are not removed yet.
        """
        return list(self._image.kept.of_type(DelegationTokenRecord))  # type: ignore[arg-type]

    def hmac_of(self, token_id: str) -> bytes:
        """
        The secret of the token with this id.
        """
        found = self._hmacs.get(token_id)
        if found is None:
            found = hmac.digest(self._key, token_id.encode(), "sha512")
            if self._get(token_id) is not None:
                self._hmacs[token_id] = found
                self._ids[found] = token_id
        return found

    def login(self, mechanism: str, token_id: str) -> TokenLogin | None:
        """
        What a client needs to know of a token to authenticate itself by a *mechanism*; None if no
        token with this id is valid.

        Raises:
            NeedsWork: the mechanism's credential has to be derived first.
        """
        token = self._get(token_id) if self.is_enabled else None
        if token is None or _has_expired(token, self._clock.now_ms()):
            return None
        owner = parse_principal(token.owner)
        if owner.type != USER:
            return None
        credentials = self._credentials.setdefault(token_id, {})
        if mechanism not in credentials:
            password = base64.b64encode(self.hmac_of(token_id)).decode()
            salt = self._decoys().of_token(mechanism, token_id).salt

            def derive() -> None:
                credentials[mechanism] = derived_credential(mechanism, password, salt)

            raise NeedsWork(derive)
        return TokenLogin(owner.name, token.expiration_timestamp, credentials[mechanism])

    async def create(
        self,
        owner: KafkaPrincipal,
        requester: KafkaPrincipal,
        renewers: Sequence[KafkaPrincipal],
        max_lifetime_ms: int,
    ) -> tuple[DelegationTokenRecord, bytes]:
        """
        Create a token.

        Args:
            max_lifetime_ms: what the client asks for; 0 and less for as long as there may be.

        Returns:
            The token and its secret.

        Raises:
            DelegationTokenAuthDisabled, UnsupportedVersion: there can be no tokens.
            PolicyViolation: the tokens of the requester, or of all, have taken the memory for them.
            KafkaStorageError: the metadata log cannot be written.
        """
        self._check_supported()
        names = await self._controller.in_turns(map_in_turns(str, renewers))
        now = self._clock.now_ms()
        longest = self._lifetimes.max_ms
        last = _later(now, min(longest, max_lifetime_ms) if max_lifetime_ms > 0 else longest)
        record = DelegationTokenRecord(
            owner=str(owner),
            requester=str(requester),
            renewers=names,
            issue_timestamp=now,
            max_timestamp=last,
            expiration_timestamp=min(last, _later(now, self._lifetimes.renewal_ms)),
            token_id=uuid_text(random_uuid()),
        )

        async def create() -> None:
            await self._controller.in_turns(self._measure())
            size = _size(record)
            self._check_room(record.requester, size)
            await self._controller.write([(record, 0)])
            self._count(record.token_id, record.requester, size)

        await self._controller.change(create)
        return record, self.hmac_of(record.token_id)

    async def _measure(self) -> None:
        """
        Measure the tokens that a start has read.
        """
        if len(self._sizes) < self._image.kept.count(DelegationTokenRecord):
            for token in self.all():
                await checkpoint()
                if token.token_id not in self._sizes:
                    self._count(token.token_id, token.requester, _size(token))

    def _count(self, token_id: str, requester: str, size: int) -> None:
        self._sizes[token_id] = requester, size
        self._used[requester] += size

    def _check_room(self, requester: str, size: int) -> None:
        """
        Raises:
            PolicyViolation: a token of *size* is too much for its *requester*, or for the broker.
        """
        if self._used[requester] + size > MAX_TOKEN_BYTES_OF_A_REQUESTER:
            most = f"{MAX_TOKEN_BYTES_OF_A_REQUESTER >> 20} MiB for tokens of one requester"
        elif self._used.total() + size > MAX_TOKEN_BYTES:
            most = f"{MAX_TOKEN_BYTES >> 20} MiB for all delegation tokens"
        else:
            return
        logger.warning("%s gets no delegation token: it exceeds the %s", requester[:100], most)
        raise PolicyViolation(f"The delegation token exceeds the {most}.")

    async def renew(self, secret: bytes, client: KafkaPrincipal, period_ms: int) -> int:
        """
        Let the token with this *secret* end later, and return when.

        Args:
            period_ms: what the client asks for; 0 and less for as long as there may be.

        Raises:
            DelegationTokenAuthDisabled, UnsupportedVersion: there can be no tokens.
            DelegationTokenNotFound, DelegationTokenExpired: there is no such token, or no longer.
            DelegationTokenOwnerMismatch: the *client* is neither its owner nor a renewer.
            KafkaStorageError: the metadata log cannot be written.
        """
        self._check_supported()

        async def renew() -> int:
            now = self._clock.now_ms()
            token = await self._controller.in_turns(self._find(secret))
            if _has_expired(token, now):
                raise DelegationTokenExpired
            _check_owner(token, client)
            longest = self._lifetimes.renewal_ms
            asked = min(longest, period_ms) if period_ms > 0 else longest
            return await self._end_at(token, _later(now, asked))

        return await self._controller.change(renew)

    async def expire(self, secret: bytes, client: KafkaPrincipal, period_ms: int) -> int:
        """
        Let the token with this *secret* end in *period_ms*, and return when; remove it if that is
        negative.

        Raises:
            KafkaError: as in ``renew``. A token that has expired can still be removed.
        """
        self._check_supported()

        async def expire() -> int:
            now = self._clock.now_ms()
            token = await self._controller.in_turns(self._find(secret))
            _check_owner(token, client)
            if period_ms < 0:
                await self._remove([token.token_id])
                return now
            if _has_expired(token, now):
                raise DelegationTokenExpired
            return await self._end_at(token, _later(now, period_ms))

        return await self._controller.change(expire)

    async def remove_expired(self) -> None:
        """
        Remove the tokens that have expired.

        Raises:
            KafkaStorageError: the metadata log cannot be written.
        """
        now = self._clock.now_ms()

        async def expired() -> list[str]:
            found = []
            for token in self.all():
                await checkpoint()
                if _has_expired(token, now):
                    found.append(token.token_id)
            return found

        async def remove() -> None:
            await self._remove(await self._controller.in_turns(expired()))

        await self._controller.change(remove)

    async def _remove(self, token_ids: Sequence[str]) -> None:
        removals: list[Versioned] = [
            (RemoveDelegationTokenRecord(token_id=token_id), 0) for token_id in token_ids
        ]
        await self._controller.write(removals, atomic=False)
        for token_id in token_ids:
            secret = self._hmacs.pop(token_id, None)
            if secret is not None:
                del self._ids[secret]
            self._credentials.pop(token_id, None)
            requester, size = self._sizes.pop(token_id, ("", 0))
            self._used[requester] -= size
            if not self._used[requester]:
                del self._used[requester]

    async def _end_at(self, token: DelegationTokenRecord, timestamp: int) -> int:
        end = min(token.max_timestamp, timestamp)
        await self._controller.write([(replace(token, expiration_timestamp=end), 0)])
        return end

    async def _find(self, secret: bytes) -> DelegationTokenRecord:
        """
        Raises:
            DelegationTokenNotFound: no token has this secret.
        """
        if secret not in self._ids and len(self._ids) < self._image.kept.count(
            DelegationTokenRecord
        ):
            for token in self.all():
                await checkpoint()
                self.hmac_of(token.token_id)
        token_id = self._ids.get(secret)
        found = None if token_id is None else self._get(token_id)
        if found is None:
            raise DelegationTokenNotFound
        return found

    def _get(self, token_id: str) -> DelegationTokenRecord | None:
        found = self._image.kept.get(DelegationTokenRecord, token_id)
        assert found is None or isinstance(found, DelegationTokenRecord)
        return found

    def _check_supported(self) -> None:
        if not self.is_enabled:
            raise DelegationTokenAuthDisabled
        if self._image.metadata_version < DELEGATION_TOKENS_SINCE:
            raise UnsupportedVersion


def parties(token: DelegationTokenRecord) -> tuple[str, ...]:
    """
    The principals that may see a token without further permissions: its owner, who has created it,
    and those who may renew it.
    """
    return token.owner, token.requester, *token.renewers


def _size(token: DelegationTokenRecord) -> int:
    principals = sum(getsizeof(name) + _PRINCIPAL_BYTES for name in token.renewers)
    return TOKEN_BYTES + getsizeof(token.owner) + getsizeof(token.requester) + principals


def _check_owner(token: DelegationTokenRecord, client: KafkaPrincipal) -> None:
    name = str(client)
    if token.owner != name and name not in token.renewers:
        raise DelegationTokenOwnerMismatch


def _has_expired(token: DelegationTokenRecord, now_ms: int) -> bool:
    return token.max_timestamp < now_ms or token.expiration_timestamp < now_ms


def _later(timestamp: int, milliseconds: int) -> int:
    return min(LAST_TIMESTAMP, timestamp + milliseconds)
