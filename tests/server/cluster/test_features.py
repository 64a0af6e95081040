from __future__ import annotations

import pytest

from barnabas.server.cluster import features
from barnabas.server.cluster.errors import UnsupportedFeatureLevel


def test_feature_levels_of_a_fresh_cluster_are_supported() -> None:
    for name, level in features.BOOTSTRAP_LEVELS.items():
        features.check_feature_level(name, level)


@pytest.mark.parametrize(
    ("name", "level"),
    [("metadata.version", 6), ("metadata.version", 31), ("metadata.version", 0), ("new.one", 1)],
)
def test_unsupported_feature_level_is_refused(name: str, level: int) -> None:
    """
    A log whose records may mean something unknown is not read.
    """
    with pytest.raises(UnsupportedFeatureLevel, match=f"{name} at level {level}"):
        features.check_feature_level(name, level)


def test_unknown_feature_at_level_0_is_accepted() -> None:
    """
    Later releases have features that this one does not know, but need not use them.
    """
    features.check_feature_level("new.one", 0)


@pytest.mark.parametrize(
    ("metadata_version", "register_broker", "partition"),
    [(7, 1, 0), (8, 2, 0), (16, 2, 0), (17, 3, 1), (22, 3, 1), (23, 3, 2), (30, 4, 2)],
)
def test_record_versions_follow_the_metadata_version(
    metadata_version: int, register_broker: int, partition: int
) -> None:
    assert features.register_broker_version(metadata_version) == register_broker
    assert features.partition_version(metadata_version) == partition
