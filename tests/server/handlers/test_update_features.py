"""
UpdateFeatures on a node without a network. What is expected is what an Apache Kafka 4.3.1 answered.
"""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.coordination.cluster.image import ConfigResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.cluster_node import ClusterNode, ask, started
from tests.support.cluster_requests import features

ELR = "eligible.leader.replicas.version"
MIN_ISR = "min.insync.replicas"
UPGRADE, SAFE = 1, 2


async def update(
    node: ClusterNode, *wanted: tuple[str, int, int], version: int = 2, **options: bool
) -> Any:
    return await ask(node, features(*wanted, **options), version)


async def test_feature_level_survives_a_restart() -> None:
    files = MemoryFiles()
    node = await started(files)

    assert 0 == (await update(node, ("group.version", 0, SAFE))).error_code
    await node.stop()
    node = await started(files)

    assert "group.version" not in node.log.image.feature_levels
    assert 0 == (await update(node, ("group.version", 1, UPGRADE))).error_code
    assert 1 == node.log.image.feature_levels["group.version"]


async def test_validated_feature_update_is_not_written() -> None:
    node = await started()
    end = node.log.end_offset

    assert 0 == (await update(node, ("group.version", 0, SAFE), validate=True)).error_code
    assert end == node.log.end_offset


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (("metadata.version", 29, UPGRADE), "without setting the upgrade type"),
        (("kraft.version", 1, UPGRADE), "voters of this quorum cannot change"),
    ],
)
async def test_invalid_feature_level_fails_the_whole_request(
    wanted: tuple[str, int, int], reason: str
) -> None:
    node = await started()
    end = node.log.end_offset

    answer = await update(node, ("share.version", 0, SAFE), wanted)

    assert ErrorCode.INVALID_UPDATE_VERSION == answer.error_code
    assert reason in answer.error_message
    assert end == node.log.end_offset


async def test_enabling_eligible_leader_replicas_records_min_insync_replicas() -> None:
    """
    The option has to be the same for all brokers, so no broker may have a value of its own.
    """
    node = await started()
    await update(node, (ELR, 0, SAFE))
    assert not node.log.image.elr_enabled

    await update(node, (ELR, 1, UPGRADE))

    assert node.log.image.elr_enabled
    assert "1" == node.log.image.config(ConfigResourceType.BROKER, "")[MIN_ISR]
