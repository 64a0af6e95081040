"""
SCRAM credentials in the metadata: the server's part of a password (KIP-554, RFC 5802).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from enum import IntEnum
from itertools import islice
from typing import Final

from barnabas.coordination.cluster.image import MetadataImage
from barnabas.coordination.security.sasl.decoys import ScramCredential, Shape, shape_of
from barnabas.protocol.errors import (
    UnacceptableCredential,
    UnknownServerError,
    UnsupportedSaslMechanism,
)
from barnabas.protocol.internal_topics.metadata_records import UserScramCredentialRecord

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384
MOST_SHAPES: Final = 1000
"""So many credentials are looked at again when one has changed: the event loop waits for that."""


class ScramMechanism(IntEnum):
    """
    The mechanisms, with their numbers in messages and records.
    """

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


_HASHES: Final[Mapping[int, str]] = {
    ScramMechanism.SCRAM_SHA_256: "sha256",
    ScramMechanism.SCRAM_SHA_512: "sha512",
}


def scram_credentials(image: MetadataImage) -> dict[str, dict[int, UserScramCredentialRecord]]:
    """
    The credentials of all users, by mechanism.
    """
    found: dict[str, dict[int, UserScramCredentialRecord]] = {}
    for record in image.kept.of_type(UserScramCredentialRecord):
        assert isinstance(record, UserScramCredentialRecord)
        found.setdefault(record.name, {})[record.mechanism] = record
    return found


def scram_credential(image: MetadataImage, mechanism: str, user: str) -> ScramCredential | None:
    """
    The credential of a *user* for the *mechanism* with this name; None if there is none.
    """
    number = ScramMechanism[mechanism.replace("-", "_")]
    record = image.kept.get(UserScramCredentialRecord, (number, user))
    if record is None:
        return None
    assert isinstance(record, UserScramCredentialRecord)
    return ScramCredential(
        bytes(record.salt), bytes(record.stored_key), bytes(record.server_key), record.iterations
    )


class CredentialShapes:
    """
    The shapes of the credentials of the first users, for those of users that do not exist.
    """

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._changes = -1
        self._shapes: dict[int, list[Shape]] = {}

    def __call__(self, mechanism: str) -> Sequence[Shape]:
        """
        The sorted shapes for the *mechanism* with this name.
        """
        kept = self._image.kept
        if self._changes != kept.changes(UserScramCredentialRecord):
            self._changes = kept.changes(UserScramCredentialRecord)
            self._shapes = {}
            records = kept.of_type(UserScramCredentialRecord)
            for record in islice(records, MOST_SHAPES):
                assert isinstance(record, UserScramCredentialRecord)
                shape = shape_of(bytes(record.salt), record.iterations)
                self._shapes.setdefault(record.mechanism, []).append(shape)
            for shapes in self._shapes.values():
                shapes.sort()
        return self._shapes.get(ScramMechanism[mechanism.replace("-", "_")], ())


def check_user(name: str, mechanism: int) -> None:
    """
    Raises:
        UnacceptableCredential: the name is empty.
        UnsupportedSaslMechanism: the mechanism is unknown.
    """
    if not name:
        raise UnacceptableCredential("Username must not be empty")
    if mechanism not in list(ScramMechanism):
        raise UnsupportedSaslMechanism("Unknown SCRAM mechanism")


def check_iterations(iterations: int) -> None:
    """
    Raises:
        UnacceptableCredential: the number of iterations is too low or too high.
    """
    if iterations < MIN_ITERATIONS:
        raise UnacceptableCredential("Too few iterations")
    if iterations > MAX_ITERATIONS:
        raise UnacceptableCredential("Too many iterations")


def salted_password(mechanism: int, password: str, salt: bytes, iterations: int) -> bytes:
    """
    What a client sends in place of a password. It takes some milliseconds.
    """
    return hashlib.pbkdf2_hmac(_HASHES[mechanism], password.encode(), salt, iterations)


def credential_record(
    name: str, mechanism: int, *, salt: bytes, salted_password: bytes, iterations: int
) -> UserScramCredentialRecord:
    """
    The record of a credential, which does not reveal the password.

    Raises:
        UnknownServerError: the password is empty. Kafka fails with this code, too.
    """
    if not salted_password:
        raise UnknownServerError("The salted password must not be empty")
    algorithm = _HASHES[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", algorithm)
    return UserScramCredentialRecord(
        name=name,
        mechanism=mechanism,
        salt=salt,
        stored_key=hashlib.new(algorithm, client_key).digest(),
        server_key=hmac.digest(salted_password, b"Server Key", algorithm),
        iterations=iterations,
    )
