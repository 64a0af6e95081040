"""
Changes of the finalized features, as clients ask for them (KIP-584, KIP-778, KIP-1022; Kafka
``FeatureControlManager``).

One invalid update fails the whole request. ``kraft.version`` cannot change: the quorum of one node
has its voter in its configuration, and no other one can join.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final

from barnabas.coordination.cluster.features import (
    ELIGIBLE_LEADER_REPLICAS,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
)
from barnabas.coordination.cluster.image import (
    ConfigResourceType,
    MetadataImage,
    Versioned,
    config_record,
)
from barnabas.coordination.cluster.partition_changes import MIN_INSYNC_REPLICAS, ElectionDefaults
from barnabas.protocol.errors import InvalidUpdateVersion
from barnabas.protocol.internal_topics import metadata_records as records
from barnabas.protocol.structs import NamedTuple


class UpgradeType(IntEnum):
    """
    The direction of a change that a client expects.
    """

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """
    The request to set a feature to another level.
    """

    name: str
    level: int
    upgrade_type: int


DEPENDENCIES: Final[Mapping[tuple[str, int], Mapping[str, int]]] = {
    (ELIGIBLE_LEADER_REPLICAS, 1): {METADATA_VERSION: 23},
}
"""
The levels of other features that a level of a feature needs.
"""

CHANGED_RECORDS: Final = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30})
"""
The levels of ``metadata.version`` that added records or fields: a downgrade below one of them would
lose these (``MetadataVersion.didMetadataChange``).
"""


def feature_records(
    image: MetadataImage,
    updates: Mapping[str, FeatureUpdate],
    defaults: ElectionDefaults,
    node_id: int,
) -> list[Versioned]:
    """
    The records that make all *updates*.

    Args:
        defaults: what the configuration of this node says of topics.

    Raises:
        InvalidUpdateVersion: an update is invalid.
    """
    current = {METADATA_VERSION: image.metadata_version} | image.feature_levels

    def proposed(name: str) -> int:
        update = updates.get(name)
        return current.get(name, 0) if update is None else update.level

    made: list[Versioned] = []
    for update in updates.values():
        _check(update, current.get(update.name, 0), node_id)
        if update.name == KRAFT_VERSION:
            continue
        if update.name == METADATA_VERSION:
            _check_metadata_version(update, current[METADATA_VERSION])
        else:
            _check_dependencies(update, proposed)
        made.append((records.FeatureLevelRecord(name=update.name, feature_level=update.level), 0))
    if proposed(ELIGIBLE_LEADER_REPLICAS) > 0 and ELIGIBLE_LEADER_REPLICAS in updates:
        made = _safe_min_isr(image, defaults) + made
    return made


def _check(update: FeatureUpdate, current: int, node_id: int) -> None:
    """
    Raises:
        InvalidUpdateVersion: this node does not know the level, or the direction is wrong.
    """
    if update.upgrade_type not in list(UpgradeType):
        raise _invalid(update, "The controller does not support the given upgrade type.")
    if update.level < 0:
        raise _invalid(update, "A feature version cannot be less than 0.")
    low, high = SUPPORTED_FEATURES.get(update.name, (0, 0))
    if not low <= update.level <= high:
        reason = (
            f"only supports versions {low}-{high}" if high else "does not support this feature."
        )
        raise _invalid(update, f"Local controller {node_id} {reason}")
    is_upgrade = update.upgrade_type == UpgradeType.UPGRADE
    if update.level < current and is_upgrade:
        raise _invalid(
            update,
            "Can't downgrade the version of this feature without setting the upgrade type to"
            " either safe or unsafe downgrade.",
        )
    if update.level > current and not is_upgrade:
        raise _invalid(update, "Can't downgrade to a newer version.")
    if update.name == KRAFT_VERSION and update.level > current:
        raise _invalid(update, "The voters of this quorum cannot change.")
    if update.name == KRAFT_VERSION and update.level < current:
        raise _invalid(update, "Can't downgrade the version of this feature.")


def _check_metadata_version(update: FeatureUpdate, current: int) -> None:
    """
    Raises:
        InvalidUpdateVersion: records would be lost.
    """
    if not any(update.level < level <= current for level in CHANGED_RECORDS):
        return
    reason = (
        "Unsafe metadata downgrade is not supported in this version."
        if update.upgrade_type == UpgradeType.UNSAFE_DOWNGRADE
        else "Refusing to perform the requested downgrade because it might delete metadata"
        " information."
    )
    raise InvalidUpdateVersion(
        f"Unsupported metadata.version downgrade from {current} to {update.level}. {reason}"
    )


def _check_dependencies(update: FeatureUpdate, proposed: Callable[[str], int]) -> None:
    """
    Raises:
        InvalidUpdateVersion: there is no such feature, or another one is not at the level that this
            one needs.
    """
    if update.name not in SUPPORTED_FEATURES:
        raise _invalid(update, f"Feature {update.name} not found.")
    for name, level in DEPENDENCIES.get((update.name, update.level), {}).items():
        if proposed(name) < level:
            raise _invalid(
                update,
                f"{update.name} could not be set to {update.level} because it depends on {name}"
                f" level {level}",
            )


def _safe_min_isr(image: MetadataImage, defaults: ElectionDefaults) -> list[Versioned]:
    """
    The records after which ``min.insync.replicas``, on which the eligible leader replicas depend,
    is the same on all brokers (KIP-966).
    """
    made: list[Versioned] = []
    if MIN_INSYNC_REPLICAS not in image.config(ConfigResourceType.BROKER, ""):
        minimum = defaults[MIN_INSYNC_REPLICAS]
        made.append(config_record(ConfigResourceType.BROKER, "", MIN_INSYNC_REPLICAS, minimum))
    made += [
        config_record(ConfigResourceType.BROKER, name, MIN_INSYNC_REPLICAS, None)
        for (kind, name), config in image.configs.items()
        if kind == ConfigResourceType.BROKER and name and MIN_INSYNC_REPLICAS in config
    ]
    return made


def _invalid(update: FeatureUpdate, reason: str) -> InvalidUpdateVersion:
    return InvalidUpdateVersion(
        f"Invalid update version {update.level} for feature {update.name}. {reason}"
    )
