"""
SCRAM credentials for users and delegation tokens that do not exist.

A client that asks for a name gets a salt and a number of iterations before it has proved anything.
Those of a name without a credential must look like the others, and must not change from one
exchange, process or connection to the next; otherwise anybody can find out which names exist.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import string
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, NamedTuple

SCRAM_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""
The hash functions of the mechanisms.
"""
MIN_ITERATIONS: Final = 4096
TOKEN_SALT_BYTES: Final = 24
KAFKA_SALT_BITS: Final = 130
"""
Kafka's tools take a random number of so many bits in base 36 as a salt.
"""
_SECRET_BYTES: Final = 32
_KAFKA_SALT: Final = 0  # bytes
_LEAST_KAFKA_SALT_BYTES: Final = 20  # shorter numbers of 130 bits are improbable
_DIGITS: Final = string.digits + string.ascii_lowercase


class ScramCredential(NamedTuple):
    """
    What the broker knows of a password.
    """

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class Shape(NamedTuple):
    """
    The properties of a credential that a client sees and that its random salt does not determine.
    """

    salt_bytes: int
    """0 for the salts of Kafka's tools, whose length varies."""
    iterations: int


DEFAULT_SHAPE: Final = Shape(_KAFKA_SALT, MIN_ITERATIONS)


def shape_of(salt: bytes, iterations: int) -> Shape:
    """
    The shape of a credential with this *salt*.
    """
    return Shape(_KAFKA_SALT if _is_of_kafka(salt) else len(salt), iterations)


class Decoys:
    """
    Makes the credentials of names that have none. They depend on a secret and on the name only, and
    their shapes are distributed like those of the existing users.
    """

    def __init__(
        self, secret: bytes, shapes: Callable[[str], Sequence[Shape]] = lambda _mechanism: ()
    ) -> None:
        """
        Args:
            secret: clients must not know it, and it must not change.
            shapes: the sorted shapes of users with a mechanism.
        """
        self._secret = secret
        self._shapes = shapes

    def of_user(self, mechanism: str, name: str) -> ScramCredential:
        """
        The credential of a user who has none.
        """
        shapes = self._shapes(mechanism)
        seed = self._seed("user", mechanism, name)
        shape = DEFAULT_SHAPE
        if shapes:
            # A further user changes the shapes of few names.
            shape = shapes[int.from_bytes(seed[:8]) * len(shapes) >> 64]
        return self._credential(mechanism, seed, shape)

    def of_token(self, mechanism: str, token_id: str) -> ScramCredential:
        """
        The credential of a token that does not exist.
        """
        seed = self._seed("token", mechanism, token_id)
        return self._credential(mechanism, seed, Shape(TOKEN_SALT_BYTES, MIN_ITERATIONS))

    def _seed(self, *parts: str) -> bytes:
        return hmac.digest(self._secret, "\0".join(parts).encode(), "sha512")

    def _credential(self, mechanism: str, seed: bytes, shape: Shape) -> ScramCredential:
        size = hashlib.new(SCRAM_HASHES[mechanism]).digest_size
        random = hashlib.shake_256(seed)
        if shape.salt_bytes == _KAFKA_SALT:
            most = (KAFKA_SALT_BITS + 7) // 8
            number = int.from_bytes(random.digest(most)) >> (most * 8 - KAFKA_SALT_BITS)
            salt = _in_base_36(number)
        else:
            salt = random.digest(shape.salt_bytes)
        keys = hashlib.shake_256(seed + b"keys").digest(2 * size)
        return ScramCredential(salt, keys[:size], keys[size:], shape.iterations)


@cache
def fresh_decoys() -> Decoys:
    """
    Decoys with a random secret, which stays the same as long as the process.
    """
    return Decoys(fresh_secret())


def fresh_secret() -> bytes:
    """
    A random secret.
    """
    return secrets.token_bytes(_SECRET_BYTES)


def _is_of_kafka(salt: bytes) -> bool:
    try:
        text = salt.decode("ascii")
    except UnicodeDecodeError:
        return False
    return (
        len(text) >= _LEAST_KAFKA_SALT_BYTES
        and not set(text) - set(_DIGITS)
        and int(text, 36) < 1 << KAFKA_SALT_BITS
    )


def _in_base_36(number: int) -> bytes:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits.encode()
