"""
AlterUserScramCredentials (51): sets and removes the credentials of users (KIP-554).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import ALTER_USER_SCRAM_CREDENTIALS
from barnabas.protocol.codec.schema import Api, int8, int16, int32, message


@message
class ScramCredentialDeletion:
    name: str
    mechanism: int8


@message
class ScramCredentialUpsertion:
    name: str
    mechanism: int8
    iterations: int32
    salt: bytes
    salted_password: bytes


@message
class AlterUserScramCredentialsRequest:
    api: ClassVar[Api] = ALTER_USER_SCRAM_CREDENTIALS

    deletions: list[ScramCredentialDeletion]
    upsertions: list[ScramCredentialUpsertion]


@message
class AlterUserScramCredentialsResult:
    user: str
    error_code: int16
    error_message: str | None = None


@message
class AlterUserScramCredentialsResponse:
    api: ClassVar[Api] = ALTER_USER_SCRAM_CREDENTIALS

    throttle_time_ms: int32 = 0
    results: list[AlterUserScramCredentialsResult]
