"""
Extensions of the first message of SCRAM (RFC 5802): a broker ignores those that it does not know.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

import pytest

from barnabas.coordination.security.sasl.credentials import TokenLogin, derived_credential
from barnabas.server.security.errors import AuthenticationFailed
from barnabas.server.security.sasl.scram import ScramSaslServer
from tests.support.sasl_client import NONCE

MECHANISM: Final = "SCRAM-SHA-256"
PASSWORD: Final = "secret"
CREDENTIAL: Final = derived_credential(MECHANISM, PASSWORD, b"salt")


def authenticated(extensions: str) -> str | None:
    """
    Who the client is then: the owner of the token, or the user.
    """
    server = ScramSaslServer(
        MECHANISM,
        lambda user: CREDENTIAL if user == "name" else None,
        lambda _id: TokenLogin("owner", 1, CREDENTIAL),
    )
    bare = f"n=name,r={NONCE}{extensions}"
    told = server.evaluate(f"n,,{bare}".encode())
    server.evaluate(scram_final(bare, told, PASSWORD))
    return server.user


def scram_final(bare: str, told: bytes, password: str) -> bytes:
    """
    The last message of a client that knows the password.
    """
    values = dict(part.split("=", 1) for part in told.decode().split(","))
    final = f"c=biws,r={values['r']}"
    salted = hashlib.pbkdf2_hmac(
        "sha256", password.encode(), base64.b64decode(values["s"]), int(values["i"])
    )
    key = hmac.digest(salted, b"Client Key", "sha256")
    message = f"{bare},{told.decode()},{final}".encode()
    signature = hmac.digest(hashlib.sha256(key).digest(), message, "sha256")
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    return f"{final},p={base64.b64encode(proof).decode()}".encode()


@pytest.mark.parametrize(
    ("extensions", "user"),
    [
        ("", "name"),
        (",tokenauth=true", "owner"),
        (",tokenauth=TRUE", "owner"),
        (",other=1,tokenauth=true", "owner"),
        (",tokenauth=true,other=1", "owner"),
        (",z=1,tokenauth=true,a=2", "owner"),
        (",other=1", "name"),
        (",tokenauth=false", "name"),
        (",tokenauth=false,tokenauth=true", "owner"),
        (",tokenauth=true,tokenauth=false", "name"),
    ],
)
def test_extensions_of_scram_may_have_any_order(extensions: str, user: str) -> None:
    assert user == authenticated(extensions)


@pytest.mark.parametrize("extensions", [", tokenauth=true", ",x=", ",=1", ",1=2", ",x"])
def test_malformed_extensions_are_refused(extensions: str) -> None:
    with pytest.raises(AuthenticationFailed):
        authenticated(extensions)
