"""
``uniform``: members get as many partitions as others do, and keep what they have where that allows
it (Kafka's ``UniformAssignor``).
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from barnabas.coordination.groups.assignors import uniform_heterogeneous, uniform_homogeneous
from barnabas.coordination.groups.assignors.spec import Assignment, GroupSpec, SubscriptionType

NAME: Final = "uniform"


def assign(group: GroupSpec, partition_counts: Mapping[UUID, int]) -> dict[str, Assignment]:
    """
    The target assignment of each member; the one that it has, if it is the same.

    Args:
        partition_counts: by topic.

    Raises:
        TopicWithoutMetadata: a subscribed topic is not among them.
    """
    if not group.members:
        return {}
    if group.subscription_type is SubscriptionType.HOMOGENEOUS:
        return uniform_homogeneous.assign(group.members, partition_counts)
    return uniform_heterogeneous.assign(group.members, partition_counts)
