from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from barnabas.protocol.errors import OffsetOutOfRange, RecordListTooLarge
from barnabas.protocol.records.batch import batches, build_batch_with_offsets
from barnabas.protocol.records.record import Record
from barnabas.storage.clock import SystemClock
from barnabas.storage.errors import (
    InconsistentTopicId,
    InvalidLogDirectory,
    KafkaStorageError,
    OffsetsOutOfOrder,
    UnexpectedAppendOffset,
)
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.fs.interface import WouldBlock
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.disk import RecordingFiles
from tests.support.logs import (
    DIRECTORY,
    LogHome,
    append,
    append_with_offsets,
    bases,
    config_with,
    end_transaction,
    log_of,
    new_log,
    offsets,
    produce,
    read_records,
)
from tests.support.segments import FIRST_TIMESTAMP
from tests.support.some import some

TOPIC_ID = UUID(int=77)
METADATA = DIRECTORY / "partition.metadata"


def leader_batch(offset: int, epoch: int = 0, count: int = 1) -> memoryview:
    """
    A batch as the metadata log writes it.
    """
    records = [Record(at, FIRST_TIMESTAMP, b"k", b"v") for at in range(offset, offset + count)]
    return memoryview(
        build_batch_with_offsets(records, base_offset=offset, partition_leader_epoch=epoch)
    )


# Whose it is.


def test_topic_id_is_written_before_the_first_record() -> None:
    files = RecordingFiles()
    log = LogHome(files=files).open(topic_id=TOPIC_ID)
    assert METADATA not in files.nodes

    append(log)

    assert METADATA in files.nodes
    written = files.operations.index("rename partition.metadata.tmp")
    assert written < files.operations.index("write 00000000000000000000.log @0 +150")
    assert "sync directory data" in files.operations


def test_topic_id_is_written_soon_without_a_record() -> None:
    home = LogHome()
    log = home.open(topic_id=TOPIC_ID)

    log.remove_deleted_files()

    assert METADATA in home.files.nodes
    home.stop(log)
    assert home.open().topic_id == TOPIC_ID


def test_log_refuses_another_topic_id() -> None:
    home = LogHome()
    home.stop(home.open(topic_id=TOPIC_ID))

    with pytest.raises(InconsistentTopicId):
        home.open(topic_id=UUID(int=78))
    log = home.open()
    log.assign_topic_id(TOPIC_ID)
    with pytest.raises(InconsistentTopicId):
        log.assign_topic_id(UUID(int=78))


def test_log_directory_must_have_the_name_of_a_partition() -> None:
    with pytest.raises(InvalidLogDirectory):
        new_log(Path("/data/nothing"))


# Appends that bring their offsets.


def test_metadata_log_batches_keep_their_offsets() -> None:
    log = LogHome().open()
    append_with_offsets(log, leader_batch(3))
    data = memoryview(b"".join([leader_batch(4, 1, count=2), leader_batch(9, 1)]))

    info = append_with_offsets(log, data)

    assert (4, 9, len(data)) == (info.first_offset, info.last_offset, info.valid_bytes)
    assert [3, 4, 5, 9] == offsets(log)
    assert [(0, 3), (1, 4)] == list(log.leader_epochs.entries)


def test_replicated_offsets_must_follow_the_log_end_offset() -> None:
    log = LogHome().open()
    append_with_offsets(log, leader_batch(5))

    with pytest.raises(UnexpectedAppendOffset) as caught:
        append_with_offsets(log, leader_batch(5))
    assert (5, 5) == (caught.value.first_offset, caught.value.last_offset)
    with pytest.raises(OffsetsOutOfOrder):
        append_with_offsets(log, memoryview(bytes(leader_batch(8)) + bytes(leader_batch(7))))


def test_batch_larger_than_segment_bytes_is_refused() -> None:
    log = LogHome(segment_bytes=200).open()

    append(log, size=200)
    with pytest.raises(RecordListTooLarge, match=r"is 201 bytes .* segment size of 200"):
        append(log, size=201)


def test_flush_is_due_after_flush_messages() -> None:
    log = LogHome(flush_messages=3).open()

    assert [False, False, True, True] == [append(log).flush_due for _ in range(4)]
    log.flush()
    assert 4 == log.recovery_point
    assert not append(log).flush_due


def test_append_result_has_the_log_start_offset() -> None:
    _, log = log_of(5)
    log.delete_records(3)

    assert 3 == append(log).log_start_offset


# High watermarks.


def test_high_watermark_stays_within_the_log() -> None:
    _, log = log_of(5)
    log.delete_records(2)

    assert 5 == log.update_high_watermark(99)
    assert 2 == log.update_high_watermark(0)
    assert 4 == log.update_high_watermark(4)


def test_high_watermark_follows_a_roll() -> None:
    _, log = log_of(3)
    log.roll()
    append(log)

    info = log.read(3, 1000, FetchIsolation.HIGH_WATERMARK, True)

    assert info.records is not None
    assert 150 == info.records.size


# Truncation.


def test_truncation_rolls_back_producer_state_and_transactions() -> None:
    _, log = log_of(4, segment_bytes=1000)
    produce(log, b"v", producer_id=1, producer_epoch=0, base_sequence=0)
    produce(log, b"v", producer_id=2, producer_epoch=0, base_sequence=0, is_transactional=True)
    log.update_high_watermark(5)
    end_transaction(log, 2, commit=False)
    append(log, 8)

    assert log.truncate_to(5)

    assert ([0], 5) == (bases(log), log.log_end_offset)
    assert [1] == [producer.producer_id for producer in log.active_producers()]
    assert 5 == log.last_stable_offset
    assert [] == log.collect_aborted_transactions(0, 100)
    assert produce(log, b"v", producer_id=1, producer_epoch=0, base_sequence=0).is_duplicate


def test_truncated_offsets_must_be_flushed_again() -> None:
    _, log = log_of(5)
    log.flush()

    log.truncate_to(3)

    assert 3 == log.recovery_point


def test_truncation_beyond_the_end_only_removes_empty_leader_epochs() -> None:
    _, log = log_of(3)
    log.assign_epoch_start_offset(5, 3)

    assert not log.truncate_to(3)

    assert (3, 0) == (log.log_end_offset, log.leader_epochs.latest_epoch)
    with pytest.raises(ValueError, match="negative"):
        log.truncate_to(-1)


def test_truncation_below_the_first_segment_restarts_the_log_there() -> None:
    _, log = log_of(20, segment_bytes=1000)
    log.delete_records(14)
    log.delete_old_segments()
    assert [12, 18] == bases(log)

    assert log.truncate_to(7)

    assert [7] == bases(log)
    assert 7 == log.log_start_offset == log.log_end_offset == log.high_watermark
    append(log)
    assert [7] == offsets(log)


class InterruptedFiles(MemoryFiles):
    """
    A disk that does something else before it syncs a segment, once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], object] | None = None

    def step(self, action: str, path: Path, position: int = 0, data: bytes = b"") -> None:
        if action == "sync" and path.suffix == ".log" and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()


def test_flush_begun_before_a_truncation_does_not_advance_the_recovery_point() -> None:
    files = InterruptedFiles()
    _, log = log_of(5, files=files)
    files.meanwhile = lambda: log.truncate_to(1) and append(log, 9)

    log.flush()
    assert 0 == log.recovery_point
    log.flush()
    assert 10 == log.recovery_point


def test_appends_continue_while_a_flush_waits_for_the_disk() -> None:
    files = InterruptedFiles()
    _, log = log_of(5, files=files)
    writer = threading.Thread(target=append, args=(log, 3))

    def write() -> None:
        writer.start()
        writer.join()

    files.meanwhile = write
    log.flush()

    assert (5, 8) == (log.recovery_point, log.log_end_offset)


# Reading without waiting.


def test_nonblocking_read_of_cold_pages_raises_would_block() -> None:
    home, log = log_of(10, segment_bytes=1000)
    home.files.is_cold = True

    with pytest.raises(WouldBlock):
        log.read(3, 1000, FetchIsolation.HIGH_WATERMARK, True, nowait=True)
    info = log.read(9, 1000, FetchIsolation.HIGH_WATERMARK, True, nowait=True)
    assert info.records is not None
    with pytest.raises(WouldBlock):
        info.records.read(nowait=True)


# Compaction's way in.


def test_compacted_segments_replace_their_sources() -> None:
    home, log = log_of(20, segment_bytes=1000, file_delete_delay_ms=0)
    info = log.read(0, 1 << 20, FetchIsolation.LOG_END, True)
    old = log.segments.values()[:2]
    new = log.create_new_cleaned_segment(0)
    for segment in old:
        for batch in list(segment.log.batches())[1::2]:
            new.append(batch.last_offset, batch.data)
    new.on_become_inactive_segment()
    new.flush()

    log.replace_segments([new], list(old))

    assert [0, 12, 18] == bases(log)
    assert [1, 3, 5, 7, 9, 11, *range(12, 20)] == offsets(log)
    assert info.records is not None
    assert 900 == len(info.records.read())
    assert home.has_file(6, ".snapshot.deleted")
    log.remove_deleted_files()
    assert not [name for name in home.names() if name.endswith((".deleted", ".cleaned", ".swap"))]
    home.stop(log)
    assert [1, 3, 5, 7, 9, 11, *range(12, 20)] == offsets(home.open())


# The end.


def test_renamed_log_continues_under_its_new_name() -> None:
    home = LogHome(segment_bytes=1000)
    log = home.open(topic_id=TOPIC_ID)
    append(log, 10)

    log.rename_dir("u-0", should_reinitialize=True)
    append(log, 10)
    log.assign_epoch_start_offset(3, 20)
    log.flush()
    log.close()

    assert {log.dir} == {segment.log.path.parent for segment in log.segments.values()}
    names = home.files.names(DIRECTORY.with_name("u-0"))
    assert "partition.metadata" in names
    assert [] == [path for path in home.files.nodes if path.parent == DIRECTORY]
    assert b"3 20" in home.files.read_bytes(DIRECTORY.with_name("u-0") / "leader-epoch-checkpoint")


def test_log_being_deleted_writes_nothing_under_its_old_name() -> None:
    home, log = log_of(10, segment_bytes=1000)
    log.delete_records(7)
    name = "t-0.0123456789abcdef0123456789abcdef-delete"

    log.rename_dir(name, should_reinitialize=False)
    home.files.make_directory(DIRECTORY)
    log.remove_deleted_files()

    assert [] == home.names()
    epochs = home.files.read_bytes(DIRECTORY.with_name(name) / "leader-epoch-checkpoint")
    assert b"0\n1\n0 7\n" == epochs
    info = log.read(8, 1000, FetchIsolation.HIGH_WATERMARK, True)
    log.delete()
    assert not home.files.exists(DIRECTORY.with_name(name))
    assert info.records is not None
    assert 300 == info.records.size
    with pytest.raises(KafkaStorageError, match="is closed"):
        append(log)


def test_close_writes_what_the_next_start_needs() -> None:
    home, log = log_of(8, segment_bytes=1000, index_interval_bytes=0)

    home.stop(log)

    assert (8, 12) == (len(home.file(6, ".index")), len(home.file(6, ".timeindex")))
    assert home.has_file(8, ".snapshot")
    assert 8 == home.recovery_point


def test_log_repr_shows_its_directory_and_high_watermark() -> None:
    _, log = log_of(2)

    assert "Log(dir=/data/t-0, topicId=None, highWatermark=2, " in repr(log)
    assert (300, "t-0") == (log.size, str(log.topic_partition))


# Threads.


def read_one(log: Log) -> None:
    """
    Read at the start of the log, which may move away meanwhile.
    """
    start = log.log_start_offset
    try:
        info = log.read(start, 3000, FetchIsolation.HIGH_WATERMARK, True)
        log.fetch_offset_by_timestamp(FIRST_TIMESTAMP + start)
    except OffsetOutOfRange:
        return
    found = [] if info.records is None else list(batches(info.records.read()))
    assert all(batch.is_valid() for batch in some(found))
    first = info.fetch_offset
    assert list(range(first, first + len(found))) == [batch.base_offset for batch in found]


def look_after(log: Log) -> None:
    log.delete_old_segments()
    log.flush()
    log.remove_deleted_files()


def test_readers_do_not_block_writers_and_see_whole_batches(tmp_path: Path) -> None:
    config = config_with(
        segment_bytes=2000,
        retention_bytes=6000,
        retention_ms=-1,
        file_delete_delay_ms=0,
        index_interval_bytes=200,
    )
    log = new_log(tmp_path / "t-0", config, files=DiskFiles(), clock=SystemClock())
    append(log)
    done = threading.Event()
    problems: list[BaseException] = []

    def run(work: Callable[[Log], None]) -> None:
        try:
            while not done.is_set():
                work(log)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in (read_one, look_after)]
    for thread in threads:
        thread.start()
    append(log, 999)
    done.set()
    for thread in threads:
        thread.join()
    log.delete_old_segments()

    assert [] == problems
    assert 1000 == log.log_end_offset
    assert log.size < 10_000
    assert log.log_start_offset == read_records(log)[0].offset
    log.close()
