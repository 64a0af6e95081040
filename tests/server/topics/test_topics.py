from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from errno import EMFILE
from pathlib import Path

import pytest

from barnabas.coordination.cluster.image import Topic
from barnabas.protocol.errors import (
    ErrorCode,
    NotLeaderOrFollower,
    UnknownTopicOrPartition,
)
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.server.topics import topics
from barnabas.storage.errors import TooManyOpenFiles
from barnabas.storage.topic_partition import TopicPartition
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.clock import StillClock
from tests.support.cluster_node import DATA, started
from tests.support.some import some
from tests.support.topic_requests import creatable


def batch(text: str) -> memoryview:
    return memoryview(build_batch([SimpleRecord(1_700_000_000_000, b"key", text.encode())]))


def directories(files: MemoryFiles, log_dir: Path = DATA) -> list[str]:
    return [n for n in files.names(log_dir) if files.is_directory(log_dir / n) and n[:2] != "__"]


NEVER = 10**9


async def test_created_topic_is_usable() -> None:
    files = MemoryFiles()
    node = await started(files)

    await node.create("t", 2)

    topic = node.topic("t")
    assert topic is node.topics.get_by_id(topic.id)
    assert "t" in node.topics
    assert (["t"], 1) == ([t.name for t in node.topics], len(node.topics))
    assert ["t-0", "t-1"] == directories(files)
    partition = node.partitions.expect("t", 1)
    assert 0 == partition.append(batch("x")).first_offset
    assert 1 == partition.log.high_watermark
    assert b"0\n1\n0 0\n" == files.read_bytes(DATA / "t-1" / "leader-epoch-checkpoint")


async def test_leader_epochs_of_very_many_partitions_are_written_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topics, "EPOCHS_AT_ONCE", 2)
    files = MemoryFiles()
    node = await started(files)

    def epochs() -> list[bytes]:
        paths = (DATA / f"t-{index}" / "leader-epoch-checkpoint" for index in range(3))
        return [files.read_bytes(path) for path in paths]

    await node.create("t", 3)
    assert [b""] * 3 == epochs()

    node.partitions.expect("t", 1).append(batch("x"))
    assert [b"", b"0\n1\n0 0\n", b""] == epochs()

    node.log_manager.remove_deleted()
    assert [b"0\n1\n0 0\n"] * 3 == epochs()

    await node.stop()
    node = await started(files)
    assert [0, 1, 0] == [log.log_end_offset for _, log in sorted(node.log_manager.logs().items())]
    assert [b"0\n1\n0 0\n"] * 3 == epochs()

    await node.stop()
    assert [b"0\n1\n2 0\n", b"0\n2\n0 0\n2 1\n", b"0\n1\n2 0\n"] == epochs()


async def test_deleted_topic_is_gone() -> None:
    files = MemoryFiles()
    node = await started(files)
    await node.create("t", 2, retention_ms="5")
    partition = node.partitions.expect("t", 0)

    await node.delete("t")

    assert node.topics.get("t") is None
    assert node.partitions.get("t", 0) is None
    with pytest.raises(UnknownTopicOrPartition):
        partition.append(batch("x"))
    assert all(name.endswith("-delete") for name in some(directories(files)))
    assert {} == node.configs.of("t")


async def test_version_of_the_topics_grows_with_each_change() -> None:
    node = await started()
    versions = [node.topics.version]

    for change in (node.create, node.delete):
        await change("t")
        versions.append(node.topics.version)

    assert versions == sorted(set(versions))


async def test_recreated_topic_has_another_id_and_begins_at_0() -> None:
    node = await started()
    await node.create("t")
    first = node.topic("t")
    node.partitions.expect("t", 0).append(batch("x"))

    await node.delete("t")
    await node.create("t")

    second = node.topic("t")
    assert first.id != second.id
    assert node.topics.get_by_id(first.id) is None
    assert 0 == node.partitions.expect("t", 0).append(batch("y")).first_offset


async def test_unknown_topic_ids_are_not_deleted() -> None:
    node = await started()
    await node.create("a")
    topic = node.topic("a")
    other = node.controller.image.brokers[1].incarnation_id

    errors = await node.topics.delete([other, topic.id])

    assert {other: ErrorCode.UNKNOWN_TOPIC_ID} == {i: e.code for i, e in errors.items()}
    assert "a" not in node.topics


async def test_validate_only_changes_nothing() -> None:
    node = await started()
    end = node.log.end_offset

    plan = await node.topics.create([creatable("t", 3)], validate_only=True)

    assert 3 == plan.created["t"].num_partitions
    assert plan.created["t"].id.int > 0
    assert "t" not in node.topics
    assert end == node.log.end_offset


@pytest.mark.parametrize("clean", [True, False])
async def test_topics_survive_a_restart(clean: bool) -> None:
    files = MemoryFiles()
    node = await started(files)
    await node.create("a", 2, cleanup_policy="compact")
    await node.create("b")
    await node.delete("b")
    node.partitions.expect("a", 1).append(batch("x"))
    ids = {topic.name: topic.id for topic in node.topics}
    node.log_manager.remove_deleted()  # The thread of it also writes what was put off.
    if clean:
        await node.stop()
    files.locked.clear()

    again = await started(files)

    assert ids == {topic.name: topic.id for topic in again.topics}
    assert again.configs.log_config("a").compact
    reopened = again.partitions.expect("a", 1)
    assert 2 == reopened.leader_epoch
    assert 1 == reopened.append(batch("y")).first_offset
    assert b"0\n2\n0 0\n2 1\n" == files.read_bytes(DATA / "a-1" / "leader-epoch-checkpoint")
    assert [] == again.report.strays


async def test_clean_shutdown_file_has_the_broker_epoch() -> None:
    files = MemoryFiles()
    epochs = []
    for _ in range(2):
        node = await started(files)
        epochs.append(node.controller.broker_epoch)
        assert epochs[-1] == node.controller.image.brokers[1].broker_epoch
        await node.stop()
        marker = json.loads(files.read_bytes(DATA / ".kafka_cleanshutdown"))
        assert {"version": 0, "brokerEpoch": epochs[-1]} == marker

    assert epochs[0] < epochs[1]


async def test_listeners_are_told_of_topics_in_order() -> None:
    node = await started()
    heard: list[str] = []

    def created(topic: Topic) -> None:
        assert node.partitions.get(topic.name, 0) is not None
        heard.append(f"created {topic.name}")

    def failing(_: object) -> None:
        raise RuntimeError("a listener failed")

    async def deleted(topics: Sequence[Topic]) -> None:
        (topic,) = topics
        assert node.partitions.get(topic.name, 0) is None
        await asyncio.sleep(0)
        heard.append(f"deleted {topic.name}")

    node.topics.on_topic_created += [failing, created]
    node.topics.on_topics_deleted += [failing, deleted]

    await node.create("t")
    await node.delete("t")

    assert ["created t", "deleted t"] == heard


async def test_concurrent_requests_see_no_partial_changes() -> None:
    node = await started()

    plans = await asyncio.gather(*[node.topics.create([creatable("t")]) for _ in range(5)])

    assert 1 == sum("t" in plan.created for plan in plans)
    assert 4 == sum(plan.errors.keys() == {"t"} for plan in plans)


async def test_cancelled_creation_is_completed() -> None:
    files = MemoryFiles()
    node = await started(files)
    task = asyncio.ensure_future(node.topics.create([creatable("t")]))
    await asyncio.sleep(0)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await node.create("u")

    assert {"t", "u"} == {topic.name for topic in node.topics}
    assert node.partitions.get("t", 0) is not None


async def test_requested_topics_are_created_with_broker_defaults() -> None:
    node = await started(num_partitions="3")

    await node.topics.create_missing(["t", "b@d", "t2"])
    await node.topics.create_missing(["t"])

    assert {"t": 3, "t2": 3} == {topic.name: len(topic.partitions) for topic in node.topics}
    # The defaults of the broker are not stored.
    assert {} == node.configs.of("t")


async def test_internal_topics_are_created_with_coordinator_options() -> None:
    node = await started(offsets_topic_num_partitions="5", offsets_topic_segment_bytes="1048576")

    names = ["__consumer_offsets", "__transaction_state", "__share_group_state"]
    await node.topics.create_missing(names)

    topics = [node.topic(name) for name in names]
    assert all(topic.is_internal for topic in topics)
    assert [5, 50, 50] == [len(topic.partitions) for topic in topics]
    configs = [node.configs.of(name) for name in names]
    assert ["compact", "compact", "delete"] == [each["cleanup.policy"] for each in configs]
    offsets, transactions, _ = configs
    assert ("producer", "1048576") == (offsets["compression.type"], offsets["segment.bytes"])
    assert "uncompressed" == transactions["compression.type"]


async def test_failed_automatic_creation_is_logged_and_reported_as_unknown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = await started(default_replication_factor="3")

    await node.topics.create_missing(["t"])

    assert "t" not in node.topics
    assert "The target replication factor of 3 cannot be reached" in caplog.text


async def test_log_that_cannot_be_opened_is_not_served(caplog: pytest.LogCaptureFixture) -> None:
    # As in Kafka the topic exists; a restart may open the partition again.
    node = await started()

    await node.create("t", segment_index_bytes="4")

    assert "t" in node.topics
    with pytest.raises(NotLeaderOrFollower):
        node.partitions.expect("t", 0)
    assert "The log of t-0 cannot be opened" in caplog.text


async def test_strays_are_renamed_at_the_start() -> None:
    files = MemoryFiles()
    node = await started(files)
    await node.create("t")
    await node.stop()
    files.rename(DATA / "t-0", DATA / "other-0")

    again = await started(files)

    assert 1 == len(again.report.strays)
    assert again.partitions.get("t", 0) is not None
    assert again.partitions.get("other", 0) is None


A, B = Path("/a"), Path("/b")


async def test_partitions_are_distributed_over_directories() -> None:
    files, clock = MemoryFiles(), StillClock()
    node = await started(files, clock, log_dirs=(A, B))
    await node.create("t", 4)

    for _ in range(2):
        topic = node.topic("t")
        for index, partition in some(topic.partitions.items()):
            log = node.log_manager.get_log(TopicPartition("t", index))
            assert log is not None
            assert (node.log_manager.directories.ids[log.parent_dir],) == partition.directories
        assert [2, 2] == [len(directories(files, A)), len(directories(files, B))]
        await node.stop()
        node = await started(files, clock, log_dirs=(A, B))


async def test_new_partitions_go_to_directories_in_order() -> None:
    files = MemoryFiles()
    node = await started(files, log_dirs=(A, B))

    await node.create("t", 24)

    assert {f"t-{index}" for index in range(0, 24, 2)} == set(directories(files, A))
    assert {f"t-{index}" for index in range(1, 24, 2)} == set(directories(files, B))


async def test_partitions_of_a_missing_directory_are_not_led() -> None:
    # Their records are on the missing disk, so no empty logs take their place.
    files, clock = MemoryFiles(), StillClock()
    node = await started(files, clock, log_dirs=(A, B))
    await node.create("t", 4)
    await node.stop()
    files.remove_tree(B)

    again = await started(files, clock, log_dirs=(A, B))

    topic = again.topic("t")
    led = [index for index, p in topic.partitions.items() if p.leader == 1]
    assert 2 == len(led)
    assert led == [p.index for p in again.partitions.of_topic("t")]
    (lost, *_) = set(range(4)) - set(led)
    with pytest.raises(NotLeaderOrFollower):
        again.partitions.expect("t", lost)
    assert [] == directories(files, B)


async def test_topic_without_descriptors_for_its_logs_is_refused() -> None:
    files = FailingFiles()
    node = await started(files)
    openings = frozenset({"open", "map", "sync directory"})

    files.fail(errno=EMFILE, only=openings, forever=True)
    with pytest.raises(TooManyOpenFiles):
        await node.create("t")
    assert "t" not in node.topics
    files.fail(NEVER)
    await node.create("t")

    assert not node.log_manager.failures.any_offline
    assert node.partitions.expect("t", 0).error is None


async def test_disk_error_during_creation_leaves_no_undurable_topic() -> None:
    step = 0
    while True:
        files = FailingFiles()
        node = await started(files)
        files.fail(step)
        try:
            await node.create("t")
        except Exception:
            assert node.partitions.get("t", 0) is None or "t" in node.topics
            step += 1
            if step > 200:
                raise
            continue
        if node.partitions.get("t", 0) is not None and files._countdown is not None:
            break
        step += 1

    assert step > 3
