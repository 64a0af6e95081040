"""
A client that authenticates step by step, in any order.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from struct import pack
from typing import Any, Final

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.wire_client import BlockingClient, Disconnected

CLOSED = "closed"
SILENT = "silent"
NONCE = "fyko+d2lbbFgONRv9qkxdawL"


class SaslClient(BlockingClient):
    """
    One connection, whose responses are reduced to short comparable values.
    """

    session_lifetime_ms = 0
    """What the last SaslAuthenticate has said."""

    def ask(self, request: Message, version: int) -> Any:
        """
        The response to a request; ``CLOSED`` if the connection ends instead.
        """
        try:
            return super().ask(request, version)
        except Disconnected:
            return CLOSED

    def handshake(self, mechanism: str, version: int = 1) -> Any:
        answer = self.ask(SaslHandshakeRequest(mechanism=mechanism), version)
        return answer if answer == CLOSED else (answer.error_code, sorted(answer.mechanisms))

    def authenticate(self, token: bytes, version: int = 2) -> Any:
        """
        The code, the message, and the broker's token.
        """
        answer = self.ask(SaslAuthenticateRequest(auth_bytes=token), version)
        if answer == CLOSED:
            return answer
        self.session_lifetime_ms = answer.session_lifetime_ms
        return answer.error_code, answer.error_message, bytes(answer.auth_bytes)

    def log_in(self, name: str, password: str) -> None:
        """
        Authenticate with PLAIN, which has to succeed.
        """
        self.handshake("PLAIN")
        assert 0 == self.authenticate(f"\0{name}\0{password}".encode())[0]

    def raw(self, token: bytes) -> Any:
        try:
            self.send_bytes(pack(">i", len(token)) + token)
            return self.receive_frame()
        except (ConnectionError, Disconnected):
            return CLOSED

    def end(self, seconds: float = 3.0) -> str:
        """
        ``CLOSED`` if the broker closes the connection, ``SILENT`` if it does not.
        """
        self.socket.settimeout(seconds)
        try:
            return CLOSED if not self.socket.recv(1) else "an answer"
        except TimeoutError:
            return SILENT
        except OSError:
            return CLOSED

    def scram(self, user: str, password: str, *, name: str = "sha256", extension: str = "") -> Any:
        bare = f"n={user},r={NONCE}{extension}"
        told = self.authenticate(f"n,,{bare}".encode())
        if told == CLOSED or told[0]:
            return told
        server = told[2]
        values = dict(part.split("=", 1) for part in server.decode().split(","))
        final = f"c=biws,r={values['r']}"
        salted = hashlib.pbkdf2_hmac(
            name, password.encode(), base64.b64decode(values["s"]), int(values["i"])
        )
        key = hmac.digest(salted, b"Client Key", name)
        message = f"{bare},{server.decode()},{final}".encode()
        signature = hmac.digest(hashlib.new(name, key).digest(), message, name)
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        told = self.authenticate(f"{final},p={base64.b64encode(proof).decode()}".encode())
        if told != CLOSED and not told[0]:
            server_key = hmac.digest(salted, b"Server Key", name)
            expected = base64.b64encode(hmac.digest(server_key, message, name))
            assert told[2] == b"v=" + expected, "the broker knows the password, too"
            return (told[0], told[1], b"v=...")
        return told


HASHES: Final = {1: "sha256", 2: "sha512"}
"""
The hash functions of the mechanisms of SCRAM, by their numbers.
"""


def add_scram_user(port: int, name: str, password: str) -> None:
    salt = b"salt of " + name.encode()
    upsertions = [
        ScramCredentialUpsertion(
            name=name,
            mechanism=number,
            iterations=4096,
            salt=salt,
            salted_password=hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, 4096),
        )
        for number, hash_name in HASHES.items()
    ]
    # One at a time: a user is changed once in a request.
    with SaslClient(port) as client:
        for each in upsertions:
            request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[each])
            answer = client.ask(request, 0)
            assert [0] == [result.error_code for result in answer.results]
