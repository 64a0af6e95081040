from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import pytest

from barnabas.coordination.cluster.image import Versioned
from barnabas.coordination.cluster.record_frames import decode_record
from barnabas.protocol.errors import CorruptMessage
from barnabas.protocol.internal_topics import metadata_records as records
from barnabas.protocol.records.batch import HEADER_SIZE, batches
from barnabas.server.cluster.formatting import prepare_directories
from barnabas.server.cluster.snapshots import find_snapshots
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.clock import StillClock
from tests.support.cluster_node import DATA, started
from tests.support.metadata_records import broker_record, partition_record

HERE = DATA / "__cluster_metadata-0"


@dataclass
class Written:
    """
    The batches of the metadata log, as the types and versions of their records.
    """

    files: MemoryFiles
    seen: int = 0

    def news(self) -> list[list[str]]:
        data = self.files.read_bytes(HERE / "00000000000000000000.log")
        found = []
        for batch in batches(data):
            names = ["LeaderChange"]
            if not batch.is_control:
                decoded = (decode_record(record.value or b"") for record in batch.records())
                names = [
                    f"{type(record).__name__.removesuffix('Record')} {version}"
                    for record, version in decoded
                ]
            found.append(names)
        news, self.seen = found[self.seen :], len(found)
        return news


BOOTSTRAP = ["BeginTransaction 0", *["FeatureLevel 0"] * 6, "Config 0", "EndTransaction 0"]
COMES = [
    ["LeaderChange"],
    ["RegisterController 0"],
    ["RegisterBroker 4"],
    ["BrokerRegistrationChange 3"],
]
UNFENCED = "BrokerRegistrationChange 0"
CHANGED = ["PartitionChange 2", "PartitionChange 2"]


async def test_controller_writes_the_same_batches_as_kafka_on_start_and_stop() -> None:
    files = MemoryFiles()
    written = Written(files)

    node = await started(files)
    assert [COMES[0], BOOTSTRAP, *COMES[1:], [UNFENCED]] == written.news()

    await node.create("t", 2)
    assert [["Topic 0", "Partition 2", "Partition 2"]] == written.news()
    await node.stop()
    assert [["BrokerRegistrationChange 1", *CHANGED], [UNFENCED]] == written.news()

    await started(files)
    assert [*COMES, [UNFENCED, *CHANGED]] == written.news()


def damage_bootstrap(files: MemoryFiles) -> None:
    path = DATA / "bootstrap.checkpoint"
    damaged = bytearray(files.read_bytes(path))
    for batch in list(batches(bytes(damaged))):
        damaged[batch.position + HEADER_SIZE : batch.end] = bytes(batch.size - HEADER_SIZE)
    files.write_atomically(path, bytes(damaged))


async def test_log_with_records_needs_no_bootstrap_checkpoint() -> None:
    files = MemoryFiles()
    node = await started(files)
    await node.create("t")
    await node.stop()
    damage_bootstrap(files)

    node = await started(files)

    assert "t" in node.topics


async def test_fresh_metadata_log_does_not_begin_with_damaged_records() -> None:
    files = MemoryFiles()
    prepare_directories(
        [DATA], metadata_dir=DATA, node_id=1, cluster_id=None, files=files, now_ms=0
    )
    damage_bootstrap(files)

    with pytest.raises(CorruptMessage, match=r"bootstrap\.checkpoint"):
        await started(files)


async def test_brokers_that_are_gone_are_fenced() -> None:
    # The directory comes from a node of a larger cluster.
    files = MemoryFiles()
    node = await started(files)
    topic_id, other = UUID(int=77), UUID(int=78)
    mine = next(iter(node.log_manager.directories.ids.values()))
    registration = broker_record(2, 5, incarnation_id=other, fenced=False, log_dirs=[other])
    partition = partition_record(
        topic_id, replicas=[2, 1], isr=[2, 1], leader=2, leader_epoch=3, partition_epoch=3,
        directories=[other, mine],
    )  # fmt: skip
    made: list[Versioned] = [
        (registration, 4),
        (records.TopicRecord(name="t", topic_id=topic_id), 0),
        (partition, 2),
    ]
    await node.controller.change(lambda: node.controller.write(made))
    files.locked.clear()

    again = await started(files)

    assert again.log.image.brokers[2].fenced
    topic = again.topic("t")
    assert (1, (1,)) == (topic.partitions[0].leader, topic.partitions[0].isr)
    assert again.partitions.get("t", 0) is not None


async def test_metadata_snapshot_is_written_when_it_is_due() -> None:
    files, clock = MemoryFiles(), StillClock()
    node = await started(files, clock, metadata_log_max_record_bytes_between_snapshots="4000")
    for number in range(20):
        await node.create(f"t{number}")
    before = len(find_snapshots(HERE, files).complete)
    assert before > 0

    await node.controller.maintain()
    assert before == len(find_snapshots(HERE, files).complete)
    await node.create("one-more")
    clock.advance(3_600_000)
    await node.controller.maintain()

    assert before + 1 == len(find_snapshots(HERE, files).complete)


async def test_no_op_record_advances_the_log_end_and_changes_nothing() -> None:
    node = await started()
    end, before = node.log.end_offset, list(map(repr, node.log.image.as_records()))

    await node.controller.write_no_op()

    assert end + 1 == node.log.end_offset
    assert before == list(map(repr, node.log.image.as_records()))
