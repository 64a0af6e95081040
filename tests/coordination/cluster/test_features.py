from __future__ import annotations

import pytest

from barnabas.coordination.cluster import features
from barnabas.coordination.cluster.errors import UnsupportedFeatureLevel


@pytest.mark.parametrize(
    ("name", "level"),
    [("metadata.version", 6), ("metadata.version", 31), ("metadata.version", 0), ("new.one", 1)],
)
def test_unsupported_feature_level_is_refused(name: str, level: int) -> None:
    with pytest.raises(UnsupportedFeatureLevel, match=f"{name} at level {level}"):
        features.check_feature_level(name, level)


def test_unknown_feature_at_level_0_is_accepted() -> None:
    features.check_feature_level("new.one", 0)
