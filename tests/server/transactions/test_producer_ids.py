from __future__ import annotations

import asyncio

import pytest

from barnabas.protocol.errors import UnknownServerError
from barnabas.protocol.internal_topics import metadata_records as records
from barnabas.storage.errors import KafkaStorageError
from barnabas.testing.disks.crashable import CrashableFiles
from barnabas.testing.disks.failing import FailingFiles
from tests.support.cluster_node import started


async def test_new_block_of_producer_ids_is_allocated_when_one_is_used_up() -> None:
    node = await started()

    ids = [await node.producer_ids.generate_producer_id() for _ in range(2001)]

    assert list(range(2001)) == ids
    assert 3000 == node.log.image.next_producer_id


async def test_producer_ids_are_unique_among_concurrent_requests() -> None:
    node = await started()

    ids = await asyncio.gather(*[node.producer_ids.generate_producer_id() for _ in range(2500)])

    assert 2500 == len(set(ids))
    assert 3000 == node.log.image.next_producer_id


@pytest.mark.parametrize("clean", [True, False])
async def test_producer_ids_never_repeat_after_a_restart(clean: bool) -> None:
    files = CrashableFiles()
    node = await started(files)
    before = await node.producer_ids.generate_producer_id()
    if clean:
        await node.stop()
    else:
        files.crash()

    again = await started(files)

    assert (0, 1000) == (before, await again.producer_ids.generate_producer_id())


async def test_no_producer_id_comes_from_an_unwritten_block() -> None:
    # After a disk error, another start could allocate the same id.
    files = FailingFiles()
    node = await started(files)
    files.fail(only=frozenset({"sync"}))

    for _ in range(2):
        with pytest.raises(KafkaStorageError):
            await node.producer_ids.generate_producer_id()


async def test_producer_ids_can_be_exhausted() -> None:
    # There are 2**63 of them.
    node = await started()
    last = records.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=2**63 - 1000)
    node.log.image.apply(last)

    with pytest.raises(UnknownServerError, match="Exhausted all producer ids"):
        await node.producer_ids.generate_producer_id()
