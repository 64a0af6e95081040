"""
DeleteRecords, on a node without a network. What is expected is what an Apache Kafka 4.3.1 answered.
"""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaStorageError, OffsetOutOfRange
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.testing.disks.crashable import CrashableFiles
from tests.support.cluster_node import ClusterNode, ask, started
from tests.support.config_requests import told, trim
from tests.support.server import batch

E = ErrorCode


async def with_records(node: ClusterNode, topic: str, count: int, **configs: str) -> None:
    await node.create(topic, 1, **configs)
    partition = node.partitions.expect(topic, 0)
    for number in range(count):
        partition.append(batch_of(number))


def batch_of(number: int) -> memoryview:
    return memoryview(bytearray(batch(f"{number}")))


async def told_by(node: ClusterNode, request: Any, version: int = 2) -> Any:
    return told(await ask(node, request, version))


@pytest.mark.scenario(55)
@pytest.mark.parametrize("version", range(3))
async def test_deleted_records_are_no_longer_readable(version: int) -> None:
    node = await started()
    await with_records(node, "t", 12)

    assert {("t", 0): (7, E.NONE)} == await told_by(node, trim("t", (0, 7)), version)

    log = node.partitions.expect("t", 0).log
    assert 7 == log.log_start_offset
    assert log.read(7, 1000, FetchIsolation.HIGH_WATERMARK, True).records is not None
    with pytest.raises(OffsetOutOfRange):
        log.read(6, 1000, FetchIsolation.HIGH_WATERMARK, True)


@pytest.mark.scenario(55)
async def test_new_log_start_offset_survives_a_restart() -> None:
    # Once it is in the checkpoint; before that a crash restores the records, as in Kafka.
    files = CrashableFiles()
    node = await started(files)
    await with_records(node, "t", 12)
    node.partitions.expect("t", 0).log.flush()
    await told_by(node, trim("t", (0, 5)))

    files.crash()
    node = await started(files)
    assert 0 == node.partitions.expect("t", 0).log.log_start_offset

    await told_by(node, trim("t", (0, 7)))
    node.log_manager.maintenance.checkpoint_log_start_offsets()
    files.crash()
    node = await started(files)
    assert 7 == node.partitions.expect("t", 0).log.log_start_offset


@pytest.mark.scenario(56)
@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (0, (3, E.NONE)),
        (3, (3, E.NONE)),
        (11, (11, E.NONE)),
        (12, (12, E.NONE)),
        (-1, (12, E.NONE)),
        (13, (-1, E.OFFSET_OUT_OF_RANGE)),
        (-2, (-1, E.OFFSET_OUT_OF_RANGE)),
        (2**63 - 1, (-1, E.OFFSET_OUT_OF_RANGE)),
    ],
)
async def test_delete_records_accepts_offsets_up_to_the_end_or_minus_1(
    offset: int, expected: tuple[int, int]
) -> None:
    node = await started()
    await with_records(node, "t", 12)
    await told_by(node, trim("t", (0, 3)))

    assert {("t", 0): expected} == await told_by(node, trim("t", (0, offset)))


@pytest.mark.scenario(56)
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("compact", (-1, E.POLICY_VIOLATION)),
        ("compact,delete", (1, E.NONE)),
        ("delete", (1, E.NONE)),
        ("", (1, E.NONE)),
    ],
)
async def test_delete_records_is_refused_for_compacted_topics(
    policy: str, expected: tuple[int, int]
) -> None:
    node = await started()
    await with_records(node, "t", 2, cleanup_policy=policy.replace("compact", "delete"))
    node.log.image.configs[2, "t"]["cleanup.policy"] = policy
    node.log_manager.update_topic_configs({"t": node.configs.log_config("t")})

    assert {("t", 0): expected} == await told_by(node, trim("t", (0, 1)))


async def test_delete_records_reports_the_error_of_an_offline_partition() -> None:
    node = await started()
    await with_records(node, "t", 9)
    node.partitions.expect("t", 0).close(KafkaStorageError("the disk is gone"))

    assert {("t", 0): (-1, E.KAFKA_STORAGE_ERROR)} == await told_by(node, trim("t", (0, 3)))
