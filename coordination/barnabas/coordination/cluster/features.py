"""
Features: named levels that say which records may be in the metadata log (KIP-584, KIP-1022).

``metadata.version`` decides the versions in which records are written, so that an Apache Kafka of
the release that a cluster was finalized for can read them. It grows with releases::

    7  3.3-IV3    13  3.6-IV1 transactions    17  3.7-IV2 directory ids    30  4.3-IV0 cordoned dirs
    8  3.4-IV0    15  3.7-IV0 registration    23  4.0-IV1 eligible leader replicas (KIP-966)

The other features switch on what they are named after; 0 is off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.coordination.cluster.errors import UnsupportedFeatureLevel
from barnabas.storage.errors import WRITTEN_LATER

METADATA_VERSION: Final = "metadata.version"
ELIGIBLE_LEADER_REPLICAS: Final = "eligible.leader.replicas.version"
TRANSACTION_VERSION: Final = "transaction.version"
KRAFT_VERSION: Final = "kraft.version"
GROUP_VERSION: Final = "group.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"

SUPPORTED_FEATURES: Final[Mapping[str, tuple[int, int]]] = {
    ELIGIBLE_LEADER_REPLICAS: (0, 1),
    GROUP_VERSION: (0, 1),
    KRAFT_VERSION: (0, 1),
    METADATA_VERSION: (7, 30),
    SHARE_VERSION: (0, 1),
    STREAMS_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
}
"""
The lowest and the highest level of each feature that Apache Kafka 4.3 registers a node with.
"""

BOOTSTRAP_LEVELS: Final[Mapping[str, int]] = {
    METADATA_VERSION: 30,
    ELIGIBLE_LEADER_REPLICAS: 1,
    GROUP_VERSION: 1,
    SHARE_VERSION: 1,
    STREAMS_VERSION: 1,
    TRANSACTION_VERSION: 2,
}
"""
The levels of a fresh cluster, in the order in which they are written. ``kraft.version`` is not
among them: at level 0 it has no record, and higher ones belong to a quorum that can change its
voters.
"""

SCRAM_SINCE: Final = 11  # KIP-900
DELEGATION_TOKENS_SINCE: Final = 14  # KIP-48
CONTROLLER_REGISTRATION_SINCE: Final = 15  # KIP-919
DIRECTORY_IDS_SINCE: Final = 17  # KIP-858
ELIGIBLE_LEADER_REPLICAS_SINCE: Final = 23  # KIP-966
CORDONED_DIRECTORIES_SINCE: Final = 30  # KIP-1066
"""
The levels of ``metadata.version`` from which on the records of a feature are written.
"""


_LOWER: Final = (
    f"{WRITTEN_LATER.removesuffix('.')}, or lower it there with kafka-features.sh downgrade before"
    " the downgrade."
)


def check_feature_level(name: str, level: int) -> None:
    """
    Raises:
        UnsupportedFeatureLevel: *level* of the feature *name* is not supported.
    """
    if level == 0 and name != METADATA_VERSION:
        return  # The feature is off, and need not be known.
    low, high = SUPPORTED_FEATURES.get(name, (0, 0))
    if not low <= level <= high:
        known = (
            f"but only levels {low} to {high} are supported"
            if name in SUPPORTED_FEATURES
            else "which this version does not know"
        )
        # As in Kafka metadata.version is not lowered if that may lose records.
        advice = WRITTEN_LATER if name == METADATA_VERSION else _LOWER
        raise UnsupportedFeatureLevel(
            f"The metadata log has {name} at level {level}, {known}. {advice}"
        )


def register_broker_version(metadata_version: int) -> int:
    """
    The version of RegisterBrokerRecord to write.
    """
    if metadata_version >= CORDONED_DIRECTORIES_SINCE:
        return 4
    if metadata_version >= DIRECTORY_IDS_SINCE:
        return 3
    return 2 if metadata_version >= 8 else 1


def partition_version(metadata_version: int) -> int:
    """
    The version of PartitionRecord and PartitionChangeRecord to write.
    """
    if metadata_version >= ELIGIBLE_LEADER_REPLICAS_SINCE:
        return 2
    return 1 if metadata_version >= DIRECTORY_IDS_SINCE else 0
