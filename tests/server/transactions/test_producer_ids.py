from __future__ import annotations

import asyncio

import pytest

from barnabas.protocol.errors import UnknownServerError
from barnabas.protocol.internal_topics import metadata_records as records
from barnabas.storage.errors import KafkaStorageError
from barnabas.testing.disks.crashable import CrashableFiles
from barnabas.testing.disks.failing import FailingFiles
from tests.support.cluster_node import started


async def test_ids_begin_at_zero_and_count_up() -> None:
    """
    As those of Apache Kafka, with a record of the next block in the metadata log.
    """
    node = await started()

    ids = [await node.producer_ids.generate_producer_id() for _ in range(3)]

    assert [0, 1, 2] == ids
    assert 1000 == node.log.image.next_producer_id


async def test_a_new_block_is_taken_when_one_is_used_up() -> None:
    """
    Without a gap, and with one record for a thousand ids.
    """
    node = await started()

    ids = [await node.producer_ids.generate_producer_id() for _ in range(2001)]

    assert list(range(2001)) == ids
    assert 3000 == node.log.image.next_producer_id


async def test_ids_are_unique_among_all_who_ask_at_once() -> None:
    """
    Also when more of them wait for a block than it has ids.
    """
    node = await started()

    ids = await asyncio.gather(*[node.producer_ids.generate_producer_id() for _ in range(2500)])

    assert 2500 == len(set(ids))
    assert 3000 == node.log.image.next_producer_id


@pytest.mark.parametrize("clean", [True, False])
async def test_ids_never_repeat_after_a_restart(clean: bool) -> None:
    """
    The rest of a block is given up, whether the broker stopped or was killed.
    """
    files = CrashableFiles()
    node = await started(files)
    before = await node.producer_ids.generate_producer_id()
    if clean:
        await node.stop()
    else:
        files.crash()

    again = await started(files)

    assert (0, 1000) == (before, await again.producer_ids.generate_producer_id())


async def test_no_id_comes_from_a_block_that_is_not_on_the_disk() -> None:
    """
    After an error of the disk nobody gets an id that another start could give out again.
    """
    files = FailingFiles()
    node = await started(files)
    files.fail(only=frozenset({"sync"}))

    for _ in range(2):
        with pytest.raises(KafkaStorageError):
            await node.producer_ids.generate_producer_id()


async def test_the_ids_can_run_out() -> None:
    """
    There are 2**63 of them.
    """
    node = await started()
    last = records.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=2**63 - 1000)
    node.log.image.apply(last)

    with pytest.raises(UnknownServerError, match="Exhausted all producer ids"):
        await node.producer_ids.generate_producer_id()
