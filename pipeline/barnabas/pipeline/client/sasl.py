"""
The client's half of SASL: PLAIN (RFC 4616) and SCRAM (RFC 5802).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from binascii import Error as NoBase64
from collections.abc import Callable
from typing import Final

from barnabas.pipeline.client.settings import Sasl
from barnabas.pipeline.errors import BrokerError
from barnabas.protocol.errors import ErrorCode

_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_MOST_ITERATIONS: Final = 1 << 20
"""A broker that asks for more would keep this client busy."""
_NO_CHANNEL_BINDING: Final = "n,,"


def exchange(sasl: Sasl, authenticate: Callable[[bytes], bytes]) -> None:
    """
    Prove to a broker who this is, and with SCRAM have it prove that it knows the password.

    Args:
        authenticate: sends a token, and gives that of the broker.

    Raises:
        BrokerError: it does not let this user in, or its tokens make no sense.
    """
    if sasl.mechanism == "PLAIN":
        authenticate(f"\0{sasl.username}\0{sasl.password}".encode())
        return
    try:
        _scram(sasl, _HASHES[sasl.mechanism], authenticate)
    except (KeyError, ValueError, NoBase64) as error:
        raise _refused(f"its token is none: {error}") from error


def _scram(sasl: Sasl, hash_name: str, authenticate: Callable[[bytes], bytes]) -> None:
    nonce = base64.b64encode(secrets.token_bytes(18)).decode()
    user = sasl.username.replace("=", "=3D").replace(",", "=2C")
    bare = f"n={user},r={nonce}"
    first = authenticate(f"{_NO_CHANNEL_BINDING}{bare}".encode()).decode()
    answered = dict(part.split("=", 1) for part in first.split(","))
    iterations = int(answered["i"])
    if not answered["r"].startswith(nonce) or not 0 < iterations <= _MOST_ITERATIONS:
        raise _refused("its nonce or its number of iterations cannot be")
    binding = base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()
    without_proof = f"c={binding},r={answered['r']}"
    salted = hashlib.pbkdf2_hmac(
        hash_name, sasl.password.encode(), base64.b64decode(answered["s"]), iterations
    )
    message = f"{bare},{first},{without_proof}".encode()
    key = hmac.digest(salted, b"Client Key", hash_name)
    signature = hmac.digest(hashlib.new(hash_name, key).digest(), message, hash_name)
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    last = authenticate(f"{without_proof},p={base64.b64encode(proof).decode()}".encode())
    expected = hmac.digest(hmac.digest(salted, b"Server Key", hash_name), message, hash_name)
    if not hmac.compare_digest(last, b"v=" + base64.b64encode(expected)):
        raise _refused("it does not know the password itself")


def _refused(why: str) -> BrokerError:
    return BrokerError.of(ErrorCode.SASL_AUTHENTICATION_FAILED, f"The broker is not trusted: {why}")
