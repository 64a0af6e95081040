from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol.records.batch import NO_PRODUCER_ID
from barnabas.storage.errors import CorruptCheckpoint, CorruptIndex, InvalidLogDirectory
from barnabas.storage.index.time_index import ENTRY as TIME_ENTRY
from barnabas.storage.readonly.index_file import IndexFile
from barnabas.storage.readonly.log_root import LogRoot
from barnabas.storage.readonly.partition import PartitionDirectory
from barnabas.storage.readonly.segment import ReadOnlySegment
from barnabas.storage.state_files.checkpoints import EpochEntry
from barnabas.storage.topic_partition import TopicPartition
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.disk import contents
from tests.support.logs import DIRECTORY, LogHome, append, end_transaction, log_of, produce
from tests.support.segments import FIRST_TIMESTAMP
from tests.support.some import some

ROOT = DIRECTORY.parent


def view(home: LogHome) -> PartitionDirectory:
    return PartitionDirectory(DIRECTORY, home.files)


def test_log_root_lists_only_logs_in_use() -> None:
    files = MemoryFiles()
    there = ("a-0", "a-1", "__cluster_metadata-0", "other", "remote-log-index-cache")
    marked = ("a-2.abc-delete", "a-3.abc-future", "a-4.abc-stray")
    for name in (*there, *marked):
        files.make_directory(ROOT / name)
    files.open(ROOT / "a-9")
    root = LogRoot(ROOT, files)

    logs = [TopicPartition("__cluster_metadata", 0), TopicPartition("a", 0), TopicPartition("a", 1)]
    assert logs == sorted(root.logs)
    assert [ROOT / name for name in ("__cluster_metadata-0", "a-0", "a-1")] == sorted(
        root.logs.values()
    )
    assert ["-delete", "-future", "-stray"] == [each.mark for each in root.partitions if each.mark]


def test_readonly_segments_show_their_batches_and_index_entries() -> None:
    home, _ = log_of(7, segment_bytes=450, index_interval_bytes=150)

    first, second, third = view(home).segments

    assert [0, 3, 6] == [first.base_offset, second.base_offset, third.base_offset]
    assert [450, 450, 150] == [first.size, second.size, third.size]
    found = [(stored.position, stored.batch.base_offset) for stored in second.batches()]
    assert [(0, 3), (150, 4), (300, 5)] == found
    assert [(300, 5)] == [
        (stored.position, stored.batch.base_offset) for stored in second.batches(300)
    ]
    assert [(5, 300)] == list(second.offset_entries())
    assert [(FIRST_TIMESTAMP + 5, 5)] == list(second.time_entries())


def test_readonly_view_hides_the_preallocated_space_of_active_indexes() -> None:
    home, _ = log_of(5, segment_bytes=4500, index_interval_bytes=150)

    (segment,) = view(home).segments

    assert [(2, 300), (4, 600)] == list(segment.offset_entries())
    assert segment.offset_index.is_preallocated
    assert segment.offset_index.size == home.config.segment_index_bytes
    assert 2 == segment.offset_index.count


def test_readonly_view_does_not_include_later_appends() -> None:
    home, log = log_of(2)
    (segment,) = view(home).segments

    append(log, 2)

    assert [0, 1] == [stored.batch.base_offset for stored in segment.batches()]


def test_readonly_view_changes_no_file() -> None:
    home, _ = log_of(7, segment_bytes=450)
    home.remove(0, ".index")
    before = contents(home.files)

    partition = view(home)
    for segment in some(partition.segments):
        assert [] != list(segment.batches())
        list(segment.offset_entries())
        list(segment.time_entries())
        list(segment.txn_entries())
    assert partition.partition_metadata is None

    assert before == contents(home.files)
    assert not partition.segments[0].offset_index.exists


def test_readonly_view_reads_aborted_transactions_from_the_index() -> None:
    home = LogHome()
    log = home.open()
    produce(log, b"x", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    end_transaction(log, 7, commit=False)
    (segment,) = view(home).segments

    (txn,) = segment.txn_entries()
    assert (7, 0, 1, 2) == txn

    home.file(0, ".txnindex")[1] = 1
    with pytest.raises(CorruptIndex, match="version 1"):
        list(view(home).segments[0].txn_entries())


def test_leading_entry_of_zeros_is_valid_if_others_follow() -> None:
    files = MemoryFiles()
    path = DIRECTORY / "00000000000000000000.timeindex"
    entries = TIME_ENTRY.pack(0, 0) + TIME_ENTRY.pack(1, 256)
    files.make_directory(DIRECTORY)
    files.open(path).append(entries + bytes(2_400_000) + b"\0\0\0")

    index = IndexFile(files, path, TIME_ENTRY)

    assert [(0, 0), (1, 256)] == list(index.entries())


def test_readonly_log_shows_the_contents_of_its_state_files() -> None:
    home = LogHome(segment_bytes=450)
    log = home.open()
    log.assign_epoch_start_offset(3, 0)
    append(log, 4, leader_epoch=3)
    home.stop(log)

    partition = view(home)

    assert TopicPartition("t", 0) == partition.topic_partition
    assert (EpochEntry(3, 0),) == partition.leader_epochs
    assert [3, 4] == [snapshot.offset for snapshot in partition.snapshots]
    assert "" == partition.mark
    assert NO_PRODUCER_ID == next(partition.segments[0].batches()).batch.producer_id


def test_directory_waiting_for_deletion_is_marked_as_deleted(tmp_path: Path) -> None:
    files = MemoryFiles()
    path = ROOT / f"t-0.{'a' * 32}-delete"
    files.make_directory(path)

    partition = PartitionDirectory(path, files)

    assert ("-delete", TopicPartition("t", 0)) == (partition.mark, partition.topic_partition)
    with pytest.raises(InvalidLogDirectory):
        PartitionDirectory(ROOT / "lost+found", files)


def test_segment_removed_meanwhile_is_left_out() -> None:
    home, _ = log_of(4, segment_bytes=450)
    partition = view(home)
    home.remove(0, ".log")

    assert [3] == [segment.base_offset for segment in partition.segments]
    with pytest.raises(FileNotFoundError):
        ReadOnlySegment(home.files, DIRECTORY / f"{0:020d}.log")


def test_log_root_shows_the_contents_of_its_state_files() -> None:
    files = MemoryFiles()
    for name in ("a-0", "b.c-12", f"a-1.{'0' * 32}-stray", "__cluster_metadata-0", "odd"):
        files.make_directory(ROOT / name)
    files.open(ROOT / "recovery-point-offset-checkpoint").append(b"0\n2\na 0 5\nb.c 12 7\n")
    files.open(ROOT / "cleaner-offset-checkpoint").append(b"0\n1\na 0 3\n")
    files.open(ROOT / "replication-offset-checkpoint").append(b"0\n1\na 0 x\n")
    files.open(ROOT / ".kafka_cleanshutdown").append(b'{"version":0,"brokerEpoch":205}')
    files.open(ROOT / "meta.properties").append(b"version=1\nnode.id=1\ncluster.id=c\n")

    root = LogRoot(ROOT, files)

    assert root.cluster_metadata is not None
    points = {TopicPartition("a", 0): 5, TopicPartition("b.c", 12): 7}
    assert points == root.checkpoint("recovery-point-offset-checkpoint")
    assert {TopicPartition("a", 0): 3} == root.checkpoint("cleaner-offset-checkpoint")
    assert {} == root.checkpoint("log-start-offset-checkpoint")
    with pytest.raises(CorruptCheckpoint):
        root.checkpoint("replication-offset-checkpoint")
    assert root.clean_shutdown
    assert root.meta_properties is not None
    assert 1 == root.meta_properties.node_id


def test_log_root_is_in_use_while_a_broker_holds_its_lock() -> None:
    files = MemoryFiles()
    files.make_directory(ROOT)
    lock = files.lock(ROOT / ".lock")
    assert lock is not None

    assert LogRoot(ROOT, files).in_use
    lock.release()
    assert not LogRoot(ROOT, files).in_use
