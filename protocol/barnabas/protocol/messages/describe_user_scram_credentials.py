"""
DescribeUserScramCredentials (50): the mechanisms with which users can authenticate (KIP-554).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.schema import Api, int8, int16, int32, message

API = Api(50, versions=range(1), flexible=0)


@message
class UserName:
    name: str


@message
class DescribeUserScramCredentialsRequest:
    api: ClassVar[Api] = API

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
    api: ClassVar[Api] = API

    throttle_time_ms: int32 = 0
    error_code: int16
    error_message: str | None = None
    results: list[DescribeUserScramCredentialsResult]
