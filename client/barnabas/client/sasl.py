"""
The client's half of SASL: PLAIN (RFC 4616), SCRAM (RFC 5802) and OAUTHBEARER (RFC 7628).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from binascii import Error as NoBase64
from collections.abc import Callable
from typing import Final

from barnabas.client.errors import BrokerError
from barnabas.client.settings import OAuthClient, Sasl
from barnabas.protocol.errors import ErrorCode

_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_MOST_ITERATIONS: Final = 1 << 20
"""A broker that asks for more would keep this client busy."""
_TOKEN_TIMEOUT_S: Final = 30.0
_LARGEST_TOKEN_RESPONSE: Final = 1 << 20
_NO_CHANNEL_BINDING: Final = "n,,"


def exchange(sasl: Sasl, authenticate: Callable[[bytes], bytes]) -> None:
    """
    Authenticate to a broker. With SCRAM the broker proves in turn that it knows the password.

    Args:
        authenticate: sends a message of the mechanism and returns the broker's.

    Raises:
        BrokerError: the broker refuses the credentials, or violates the mechanism.
    """
    if sasl.oauth is not None:
        _oauthbearer(sasl.oauth, authenticate)
        return
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
    extension = ",tokenauth=true" if sasl.is_token else ""
    bare = f"n={user},r={nonce}{extension}"
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


def _oauthbearer(client: OAuthClient, authenticate: Callable[[bytes], bytes]) -> None:
    answer = authenticate(f"n,,\x01auth=Bearer {_token(client)}\x01\x01".encode())
    if answer:
        # RFC 7628, 3.2.3: the broker fails the exchange after this message.
        authenticate(b"\x01")
        raise BrokerError.of(
            ErrorCode.SASL_AUTHENTICATION_FAILED,
            f"The broker refuses the token: {answer.decode(errors='replace')}",
        )


def _token(client: OAuthClient) -> str:
    """
    A token, from a file or by the client credentials grant (RFC 6749, 4.4.2).
    """
    import json  # noqa: PLC0415  # few clients use tokens
    from urllib.parse import quote, urlencode  # noqa: PLC0415
    from urllib.request import Request, urlopen  # noqa: PLC0415

    request = Request(client.token_url)
    if client.client_id:
        grant = {"grant_type": "client_credentials"}
        if client.scope:
            grant["scope"] = client.scope
        request.data = urlencode(grant).encode()
        pair = f"{quote(client.client_id, safe='')}:{quote(client.client_secret, safe='')}"
        request.add_header("Authorization", "Basic " + base64.b64encode(pair.encode()).decode())
    try:
        with urlopen(request, timeout=_TOKEN_TIMEOUT_S) as response:
            body = response.read(_LARGEST_TOKEN_RESPONSE).decode().strip()
        token = json.loads(body)["access_token"] if body.startswith("{") else body
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BrokerError.of(
            ErrorCode.SASL_AUTHENTICATION_FAILED, f"{client.token_url} gives no token ({error})"
        ) from error
    return str(token)


def _refused(why: str) -> BrokerError:
    return BrokerError.of(ErrorCode.SASL_AUTHENTICATION_FAILED, f"The broker is not trusted: {why}")
