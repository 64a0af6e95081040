"""
UpdateFeatures (57): sets the finalized versions of features (KIP-584).

* v1 can validate only, and distinguishes safe and unsafe downgrades (KIP-778).
* v2 does not answer for each feature any more (KIP-1022).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import UPDATE_FEATURES
from barnabas.protocol.codec.schema import Api, int8, int16, int32, message, since


@message
class FeatureUpdateKey:
    feature: str
    max_version_level: int16
    allow_downgrade: bool = since(0, until=0, default=False)
    upgrade_type: int8 = since(1, default=1)


@message
class UpdateFeaturesRequest:
    api: ClassVar[Api] = UPDATE_FEATURES

    timeout_ms: int32 = 60000
    feature_updates: list[FeatureUpdateKey]
    validate_only: bool = since(1, default=False)


@message
class UpdatableFeatureResult:
    feature: str
    error_code: int16
    error_message: str | None = None


@message
class UpdateFeaturesResponse:
    api: ClassVar[Api] = UPDATE_FEATURES

    throttle_time_ms: int32 = 0
    error_code: int16
    error_message: str | None = None
    results: list[UpdatableFeatureResult] = since(0, until=1, default=[])
