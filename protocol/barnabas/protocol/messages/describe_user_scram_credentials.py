"""
DescribeUserScramCredentials (50): the mechanisms with which users can authenticate (KIP-554).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import DESCRIBE_USER_SCRAM_CREDENTIALS
from barnabas.protocol.codec.schema import Api, int8, int16, int32, message


@message
class UserName:
    name: str


@message
class DescribeUserScramCredentialsRequest:
    api: ClassVar[Api] = DESCRIBE_USER_SCRAM_CREDENTIALS

    users: list[UserName] | None


@message
class CredentialInfo:
    mechanism: int8
    iterations: int32


@message
class DescribeUserScramCredentialsResult:
    user: str
    error_code: int16
    error_message: str | None = None
    credential_infos: list[CredentialInfo]


@message
class DescribeUserScramCredentialsResponse:
    api: ClassVar[Api] = DESCRIBE_USER_SCRAM_CREDENTIALS

    throttle_time_ms: int32 = 0
    error_code: int16
    error_message: str | None = None
    results: list[DescribeUserScramCredentialsResult]
