"""
The credentials of delegation tokens, and how SCRAM derives one from a password.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import NamedTuple

from barnabas.coordination.security.sasl.decoys import (
    MIN_ITERATIONS,
    SCRAM_HASHES,
    ScramCredential,
)


class NeedsWork(Exception):
    """
    A token can be evaluated only after *work*, which takes milliseconds and belongs into a thread.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__()
        self.work = work


class TokenLogin(NamedTuple):
    """
    A delegation token, for those who authenticate with it.
    """

    owner: str
    expires_ms: int
    credential: ScramCredential


def derived_credential(mechanism: str, password: str, salt: bytes) -> ScramCredential:
    """
    A credential for *password*. It takes milliseconds.
    """
    name = SCRAM_HASHES[mechanism]
    salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, MIN_ITERATIONS)
    client_key = hmac.digest(salted, b"Client Key", name)
    stored_key = hashlib.new(name, client_key).digest()
    server_key = hmac.digest(salted, b"Server Key", name)
    return ScramCredential(salt, stored_key, server_key, MIN_ITERATIONS)
