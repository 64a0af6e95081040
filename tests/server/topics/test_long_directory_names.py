"""
Partitions whose directories would have names that no file system takes.
"""

from __future__ import annotations

import errno

import pytest

from barnabas.coordination.topics.creation import check_directory_names
from barnabas.protocol.errors import ErrorCode, InvalidPartitions
from barnabas.storage.errors import KafkaStorageError
from barnabas.testing.disks.failing import FailingFiles
from tests.support.cluster_node import ask, started
from tests.support.config_requests import grow, told

LONGEST = "t" * 249


def test_last_partition_of_the_longest_topic_has_five_digits() -> None:
    check_directory_names(LONGEST, 100_000)
    check_directory_names(LONGEST[1:], 1_000_000)
    for topic, partitions in ((LONGEST, 100_001), (LONGEST[1:], 1_000_001)):
        with pytest.raises(InvalidPartitions, match="256 characters, and 255 is the limit"):
            check_directory_names(topic, partitions)


async def test_partitions_without_a_legal_directory_name_are_refused() -> None:
    node = await started()
    await node.create(LONGEST)

    ((name, code, reason),) = told(await ask(node, grow(LONGEST, 100_001), 3))
    assert (LONGEST, ErrorCode.INVALID_PARTITIONS) == (name, code)
    assert "the directory of the last one" in str(reason)
    assert 1 == len(node.partitions.of_topic(LONGEST))


async def test_name_that_a_file_system_refuses_takes_no_directory_offline() -> None:
    files = FailingFiles()
    node = await started(files)

    files.fail(errno=errno.ENAMETOOLONG, only={"make directory"}, forever=True)
    await node.create("refused")
    files.heal()
    await node.create("accepted")

    assert not node.log_manager.failures.any_offline
    assert node.partitions.expect("accepted", 0).error is None
    with pytest.raises(KafkaStorageError, match="File name too long"):
        node.partitions.expect("refused", 0)
