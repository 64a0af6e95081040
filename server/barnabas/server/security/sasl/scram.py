"""
SCRAM: a proof that the client knows the password, without telling it (RFC 5802; Kafka
``ScramSaslServer``).

::

    client: n,,n=user,r=nonce
    server: r=nonce and its own,s=salt,i=iterations
    client: c=biws,r=both nonces,p=proof
    server: v=signature
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.coordination.security.sasl.credentials import TokenLogin
from barnabas.coordination.security.sasl.decoys import (
    SCRAM_HASHES,
    Decoys,
    ScramCredential,
    fresh_decoys,
)
from barnabas.server.security.errors import OTHER_USER, AuthenticationFailed

_NONCE_BYTES: Final = 24
_FIRST: Final = re.compile(
    rb"(?P<header>n,(?:a=(?P<authzid>[^,=]*(?:=(?:2C|3D)[^,=]*)*))?,)"
    rb"(?P<bare>n=(?P<user>[^,=]*(?:=(?:2C|3D)[^,=]*)*),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)"
    rb"(?P<extensions>(?:,[A-Za-z]+=[^,]+)*))"
)
_FINAL: Final = re.compile(
    rb"(?P<bare>c=(?P<channel>[A-Za-z0-9+/=]+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)"
    rb"(?:,[A-Za-z]+=[^,]+)*),p=(?P<proof>[A-Za-z0-9+/=]+)"
)


class ScramSaslServer:
    """
    Takes two tokens.
    """

    def __init__(
        self,
        mechanism: str,
        credential_of: Callable[[str], ScramCredential | None],
        token_of: Callable[[str], TokenLogin | None] = lambda _token_id: None,
        decoys: Decoys | None = None,
    ) -> None:
        """
        Args:
            credential_of: the credential of a user, None if there is none.
            token_of: the delegation token with an id, None if there is none that is valid. It may
                raise ``NeedsWork``.
            decoys: the credentials of users and tokens that do not exist; None for random ones.
        """
        self._mechanism = mechanism
        self._hash = SCRAM_HASHES[mechanism]
        self._decoys = decoys or fresh_decoys()
        self._credential_of = credential_of
        self._token_of = token_of
        self.expires_ms: int | None = None
        self.is_by_token = False
        self._credential: ScramCredential | None = None
        self._said: _Said | None = None
        self.user: str | None = None

    def evaluate(self, token: bytes) -> bytes:
        if self._said is None:
            return self._begin(token)
        return self._end(token, self._said)

    def _begin(self, token: bytes) -> bytes:
        match = _FIRST.fullmatch(token)
        if match is None:
            raise AuthenticationFailed("its first message is no SCRAM")
        user = _name(match["user"])
        if match["authzid"] and _name(match["authzid"]) != user:
            raise AuthenticationFailed(f"{user} asks to act for another user", OTHER_USER)
        owner = user
        # The decoy is made in any case: an unknown user takes as long as a known one.
        if _is_by_token(match["extensions"]):
            decoy = self._decoys.of_token(self._mechanism, user)
            login = self._token_of(user)
            self.is_by_token = True
            if login is not None:
                owner = login.owner
                self.expires_ms = login.expires_ms
                self._credential = login.credential
        else:
            decoy = self._decoys.of_user(self._mechanism, user)
            self._credential = self._credential_of(user)
        shown = self._credential or decoy
        nonce = match["nonce"] + fresh_nonce()
        answer = b"r=%b,s=%b,i=%d" % (nonce, base64.b64encode(shown.salt), shown.iterations)
        self._said = _Said(user, owner, match["header"], match["bare"], nonce, answer, shown)
        return answer

    def _end(self, token: bytes, said: _Said) -> bytes:
        match = _FINAL.fullmatch(token)
        if match is None:
            raise AuthenticationFailed("its second message is no SCRAM")
        if match["nonce"] != said.nonce or _decoded(match["channel"]) != said.header:
            raise AuthenticationFailed("its second message does not belong to its first")
        credential = said.shown
        message = b"%b,%b,%b" % (said.bare, said.answer, match["bare"])
        signature = hmac.digest(credential.stored_key, message, self._hash)
        proof = _decoded(match["proof"])
        if len(proof) != len(signature):
            raise AuthenticationFailed(f"the proof of {said.user} has another length")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        stored_key = hashlib.new(self._hash, client_key).digest()
        is_right = hmac.compare_digest(stored_key, credential.stored_key)
        if self._credential is None:
            what = "valid token" if self.is_by_token else "user"
            raise AuthenticationFailed(f"there is no {what} {said.user} for this mechanism")
        if not is_right:
            raise AuthenticationFailed(f"the password of {said.user} is wrong")
        self.user = said.owner
        return b"v=" + base64.b64encode(hmac.digest(credential.server_key, message, self._hash))


class _Said(NamedTuple):
    """
    What the first two messages have said.
    """

    user: str
    owner: str
    """Who the client is, if its proof is right: the user, or the owner of the token."""
    header: bytes
    bare: bytes
    nonce: bytes
    answer: bytes
    shown: ScramCredential
    """The credential whose salt the client has seen; a decoy if there is none."""


def _is_by_token(extensions: bytes) -> bool:
    """
    Whether the name is the id of a delegation token.
    """
    values = dict(part.split(b"=", 1) for part in extensions.split(b",") if part)
    return values.get(b"tokenauth", b"").lower() == b"true"


def fresh_nonce() -> bytes:
    """
    The broker's part of the nonce of an exchange.
    """
    return base64.b64encode(secrets.token_bytes(_NONCE_BYTES))


def _name(text: bytes) -> str:
    try:
        return text.replace(b"=2C", b",").replace(b"=3D", b"=").decode()
    except UnicodeDecodeError:
        raise AuthenticationFailed("the name of its user is no UTF-8") from None


def _decoded(text: bytes) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise AuthenticationFailed("a value of its message is no base64") from None
