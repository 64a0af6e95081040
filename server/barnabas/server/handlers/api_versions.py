"""
ApiVersions: what this broker speaks, and what it can do (KIP-35, KIP-511, KIP-584).

APIs are listed from the table of those that are served. Features are listed only when what they
switch on is here: a client that sees ``transaction.version`` 2 uses the protocol of KIP-890 at
once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from barnabas.coordination.cluster.features import (
    ELIGIBLE_LEADER_REPLICAS,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
    TRANSACTION_VERSION,
)
from barnabas.coordination.text_memory import shortened
from barnabas.protocol.apis import APIS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from barnabas.server.requests.authorization import NOTHING
from barnabas.server.requests.client import ClientSoftware
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.error_response import version_entry
from barnabas.server.requests.registry import SERVED, handles

SERVED_FEATURES: Final[Mapping[str, tuple[int, int]]] = {
    name: SUPPORTED_FEATURES[name]
    for name in (ELIGIBLE_LEADER_REPLICAS, METADATA_VERSION, TRANSACTION_VERSION)
}
"""
The lowest and highest level of each feature that is implemented for clients. The metadata log may
have more at a level above 0, for the Apache Kafka that opens it later.
"""

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@handles(ApiVersionsRequest, needs=NOTHING)
async def api_versions(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    if context.version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(version)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
        context.client.software = ClientSoftware(shortened(name), shortened(version))
    if context.client.authentication is not None:
        context.client.authentication.note_versions_told()
    levels = {METADATA_VERSION: context.broker.image.metadata_version} | {
        name: level
        for name, level in context.broker.image.feature_levels.items()
        if name in SERVED_FEATURES
    }
    return ApiVersionsResponse(
        error_code=ErrorCode.NONE,
        api_keys=[version_entry(APIS[key]) for key in sorted(SERVED) if APIS[key].is_listed],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in SERVED_FEATURES.items()
            # Java clients up to 3.8 fail on a minimum of 0 (KAFKA-17011).
            if low > 0 or context.version >= 4
        ],
        # Clients go by what has the highest epoch: how far the metadata log was read.
        finalized_features_epoch=context.broker.controller.log.high_watermark - 1,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in levels.items()
            if level > 0
        ],
    )
