"""
ApiVersions (18): which versions of which APIs the broker understands.

* v0 is the response to an unknown version, too (KIP-511).
* v1 adds the throttle time.
* v3 is flexible, though not in the header of the response; adds client software and features.
* v4 lists features whose lowest version is 0 (KAFKA-17011).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import API_VERSIONS
from barnabas.protocol.codec.schema import Api, int16, int32, int64, message, since


@message
class ApiVersionsRequest:
    api: ClassVar[Api] = API_VERSIONS

    client_software_name: str = since(3, default="")
    client_software_version: str = since(3, default="")


@message
class ApiVersion:
    api_key: int16
    min_version: int16
    max_version: int16


@message
class SupportedFeatureKey:
    name: str
    min_version: int16
    max_version: int16


@message
class FinalizedFeatureKey:
    name: str
    max_version_level: int16
    min_version_level: int16


@message
class ApiVersionsResponse:
    api: ClassVar[Api] = API_VERSIONS

    error_code: int16
    api_keys: list[ApiVersion]
    throttle_time_ms: int32 = since(1, default=0)
    supported_features: list[SupportedFeatureKey] = since(3, default=[], tag=0)
    finalized_features_epoch: int64 = since(3, default=-1, tag=1)
    finalized_features: list[FinalizedFeatureKey] = since(3, default=[], tag=2)
    zk_migration_ready: bool = since(3, default=False, tag=3)
