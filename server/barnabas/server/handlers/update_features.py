"""
UpdateFeatures: other levels of the finalized features (KIP-584; Kafka
``QuorumController.updateFeatures``).
"""

from __future__ import annotations

import logging

from barnabas.coordination.cluster.feature_updates import FeatureUpdate, feature_records
from barnabas.coordination.security.acl.permissions import ALTER_CLUSTER
from barnabas.coordination.steps import map_in_turns
from barnabas.protocol.errors import ErrorCode, InvalidUpdateVersion
from barnabas.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from barnabas.server.requests.authorization import gate
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles

logger = logging.getLogger(__name__)


@handles(UpdateFeaturesRequest, needs=gate(ALTER_CLUSTER))
async def update_features(
    request: UpdateFeaturesRequest, context: RequestContext
) -> UpdateFeaturesResponse:
    """
    Change all features that are named, or none and say which one cannot be.
    """
    asked = await map_in_turns(_asked, request.feature_updates)
    updates = {update.name: update for update in asked}

    async def change() -> None:
        made = feature_records(
            context.broker.image,
            updates,
            context.broker.controller.defaults,
            context.broker.node_id,
        )
        if not request.validate_only:
            await context.broker.controller.write(made)

    try:
        await context.broker.controller.change(change)
    except InvalidUpdateVersion as error:
        return UpdateFeaturesResponse(
            error_code=error.code,
            error_message="The update failed for all features since the following feature had an"
            f" error: {error}",
        )
    for name, level, _ in updates.values():
        logger.info("%s is at level %d%s", name, level, " (not really)" * request.validate_only)
    return UpdateFeaturesResponse(
        error_code=ErrorCode.NONE,
        results=[] if context.version > 1 else [_changed(name) for name in updates],
    )


def _asked(update: FeatureUpdateKey) -> FeatureUpdate:
    return FeatureUpdate(update.feature, update.max_version_level, update.upgrade_type)


def _changed(name: str) -> UpdatableFeatureResult:
    # Kafka has a word for it.
    return UpdatableFeatureResult(feature=name, error_code=ErrorCode.NONE, error_message="NONE")
