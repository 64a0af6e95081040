from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.coordination.cluster.errors import ForeignQuorum, InconsistentSnapshots
from barnabas.coordination.cluster.image import Versioned
from barnabas.coordination.cluster.record_frames import divided_batches
from barnabas.protocol.errors import (
    InvalidRecord,
    InvalidRequest,
    MessageTooLarge,
    RecordListTooLarge,
)
from barnabas.protocol.internal_topics import metadata_records as records
from barnabas.protocol.records.batch import batches
from barnabas.protocol.records.control import ControlRecordType
from barnabas.server.cluster.metadata_log import MetadataLog
from barnabas.server.cluster.snapshots import SnapshotId, snapshot_batches, write_snapshot
from barnabas.server.config import BrokerConfig
from barnabas.storage.errors import KafkaStorageError, TooManyOpenFiles
from barnabas.storage.fs.interface import Files
from barnabas.storage.fs.log_dir_failure import LogDirFailureChannel
from barnabas.storage.log.log import Log
from barnabas.storage.state_files.quorum_state import QuorumState
from barnabas.testing.disks.crashable import CrashableFiles
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.clock import StillClock
from tests.support.crash.points import ALL, NONE, crash_images, first
from tests.support.metadata_records import config_record, partition_record
from tests.support.some import some

DATA = Path("/data")
HERE = DATA / "__cluster_metadata-0"
VERSION: Versioned = (records.FeatureLevelRecord(name="metadata.version", feature_level=30), 0)


def open_log(
    files: Files, clock: StillClock | None = None, config: Mapping[str, str] | None = None
) -> MetadataLog:
    return MetadataLog.open(
        DATA,
        node_id=1,
        config=BrokerConfig.parse(config or {}),
        files=files,
        clock=clock or StillClock(),
        failures=LogDirFailureChannel(),
    )


def leading(
    files: Files, clock: StillClock | None = None, config: Mapping[str, str] | None = None
) -> MetadataLog:
    log = open_log(files, clock, config)
    log.lead()
    return log


def topic(number: int) -> Versioned:
    return records.TopicRecord(name=f"t{number}", topic_id=UUID(int=number + 1)), 0


def write(log: MetadataLog, *made: Versioned, atomic: bool = True) -> None:
    appended = log.append(made, atomic=atomic)
    log.flush()
    log.commit(appended)


def names(log: MetadataLog) -> list[str]:
    return list(log.image.topics_by_name)


def content(log: MetadataLog) -> list[str]:
    return [repr(record) for record in log.image.as_records()]


def test_metadata_records_are_applied_only_once_committed() -> None:
    log = leading(MemoryFiles())

    appended = log.append([topic(1)])
    log.flush()
    assert [] == names(log)
    log.commit(appended)

    assert ["t1"] == names(log)


def test_every_start_has_a_new_leader_epoch() -> None:
    files = MemoryFiles()
    for start in (1, 2, 3):
        log = leading(files)
        assert start == log.epoch
        state = QuorumState.read(HERE, files)
        assert QuorumState(leader_id=1, leader_epoch=start, voters=(1,)) == state
        write(log, topic(start))
        log.close()

    written = batches(files.read_bytes(HERE / "00000000000000000000.log"))
    assert [
        (0, 1, True),
        (1, 1, False),
        (2, 2, True),
        (3, 2, False),
        (4, 3, True),
        (5, 3, False),
    ] == [(batch.base_offset, batch.partition_leader_epoch, batch.is_control) for batch in written]
    assert b"0\n3\n1 0\n2 2\n3 4\n" == files.read_bytes(HERE / "leader-epoch-checkpoint")


def test_leader_epochs_of_the_log_are_not_reused_after_quorum_state_is_lost() -> None:
    files = MemoryFiles()
    leading(files).close()
    leading(files).close()
    files.remove(HERE / "quorum-state")

    assert 3 == leading(files).epoch


@pytest.mark.parametrize("voters", ['[{"voterId":1},{"voterId":2}]', '[{"voterId":3000}]'])
def test_quorum_of_other_voters_is_refused(voters: str) -> None:
    # Writing alone into the log of several controllers would split them.
    files = MemoryFiles()
    open_log(files).close()
    state = f'{{"clusterId":"","leaderId":2,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":{voters},"data_version":0}}'  # noqa: E501 - as it lies on the disk
    files.write_atomically(HERE / "quorum-state", state.encode())

    with pytest.raises(ForeignQuorum, match="node 1 can only open it"):
        open_log(files).lead()
    # On files whose changes stay in memory nobody is split.
    log = open_log(files)
    log.lead(take_over=True)
    assert 3 == log.epoch


def test_voters_are_recorded_atomically() -> None:
    # A crash at any operation; the next start leads as before.
    files = CrashableFiles()
    log = leading(files)
    write(log, VERSION, topic(1))

    with crash_images(files, NONE, first(1), first(40), ALL) as images:
        log.keep_voter(UUID(int=7), "CONTROLLER", "here", 9093)
        log.close()

    found = set()
    for image in images:
        again = leading(CrashableFiles(image=image))
        found.add(again.voter_directory_id.int)
        assert ["t1"] == names(again)
    assert {0, 7} == found


def test_metadata_batch_is_whole_or_missing_after_a_crash() -> None:
    files = CrashableFiles()
    log = leading(files)
    write(log, VERSION, topic(1))

    with crash_images(files, NONE, first(1), first(40), ALL) as images:
        write(log, topic(2), topic(3))
        log.close()

    found = [tuple(names(open_log(CrashableFiles(image=image)))) for image in images]
    assert {("t1",), ("t1", "t2", "t3")} == set(found)
    files.crash()
    assert ["t1", "t2", "t3"] == names(open_log(files))


def test_nothing_is_written_to_the_metadata_log_after_a_disk_error() -> None:
    # The contents of the file are unknown until the next start.
    files = FailingFiles()
    log = leading(files)
    files.fail(errno=errno.EIO, only=frozenset({"sync"}))

    with pytest.raises(KafkaStorageError):
        write(log, topic(1))
    with pytest.raises(KafkaStorageError):
        write(log, topic(2))

    assert [] == names(log)
    assert "t2" not in names(open_log(files))


@pytest.mark.parametrize("at", range(12))
def test_metadata_change_without_a_free_descriptor_is_undone_and_later_ones_succeed(
    at: int,
) -> None:
    files = FailingFiles()
    log = leading(files, config={"internal.metadata.log.segment.bytes": "1000"})
    before = log.end_offset
    files.fail(at, errno=errno.EMFILE, only=frozenset({"open", "sync directory"}))

    made = 0
    while made < 40:
        try:
            write(log, topic(made))
        except TooManyOpenFiles:
            assert before + made == log.end_offset
            continue
        made += 1

    assert [f"t{number}" for number in range(made)] == names(log) == names(open_log(files))


def test_unfinished_metadata_transaction_has_no_effect() -> None:
    files = MemoryFiles()
    log = leading(files)
    begin: Versioned = (records.BeginTransactionRecord(name="x"), 0)
    write(log, VERSION, begin, topic(1))
    assert log.in_transaction
    assert [] == names(log)
    log.close()

    again = leading(files)
    assert again.in_transaction
    write(again, (records.AbortTransactionRecord(reason="x"), 0))
    write(again, begin, topic(2), (records.EndTransactionRecord(), 0))

    assert ["t2"] == names(again)
    assert not again.in_transaction


def test_records_too_large_for_a_batch_are_refused_if_atomic_and_split_otherwise() -> None:
    log = leading(MemoryFiles())
    large: list[Versioned] = [(config_record(f"n{n}", "x" * 30_000), 0) for n in range(300)]

    with pytest.raises(RecordListTooLarge):
        write(log, *large)
    assert {} == log.image.configs
    write(log, *large, atomic=False)

    assert 300 == len(log.image.config(2, "t"))


SMALL = {
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    "internal.metadata.log.segment.bytes": "1000",
    "metadata.max.retention.bytes": "100000",
}


def snapshots(files: MemoryFiles) -> list[str]:
    return [name for name in files.names(HERE) if name.endswith(".checkpoint")]


def grow(log: MetadataLog, first: int, count: int) -> None:
    for number in range(first, first + count):
        write(log, topic(number))
        if log.snapshots.is_due():
            log.prepare_snapshot()()


def test_metadata_snapshots_are_written_as_the_log_grows() -> None:
    files = MemoryFiles()
    log = leading(files, config=SMALL)
    write(log, VERSION)
    grow(log, 0, 100)
    log.close()

    assert len(snapshots(files)) > 2
    again = open_log(files, config=SMALL)
    assert content(log) == content(again)
    # What came after the snapshot counts for the next one.
    assert again.snapshots.is_due() == log.snapshots.is_due()
    assert 100 == len(names(again))


def test_metadata_snapshot_by_time_requires_a_change() -> None:
    clock, files = StillClock(), MemoryFiles()
    log = leading(files, clock)
    write(log, VERSION)
    assert not log.snapshots.is_due()

    clock.advance(3_600_000)
    assert log.snapshots.is_due()
    log.prepare_snapshot()()
    assert not log.snapshots.is_due()
    clock.advance(3_600_000)

    assert not log.snapshots.is_due()


def test_old_metadata_snapshots_and_segments_are_deleted_by_size() -> None:
    files = MemoryFiles()
    config = SMALL | {"metadata.max.retention.bytes": "9000"}
    log = leading(files, config=config)
    write(log, VERSION)
    grow(log, 0, 120)
    log.close()

    left = snapshots(files)
    segments = [name for name in files.names(HERE) if name.endswith(".log")]
    assert 0 < len(left) < 3
    assert segments[0] > "0" * 20 + ".log"
    again = open_log(files, config=config)
    assert content(log) == content(again)


def test_replaced_metadata_snapshots_are_deleted_by_age() -> None:
    # A week after the time they stand for.
    clock, files = StillClock(), MemoryFiles()
    log = leading(files, clock, SMALL)
    write(log, VERSION)
    grow(log, 0, 80)
    before = snapshots(files)
    assert len(before) > 1

    clock.advance(7 * 24 * 3_600_000 + 1)
    log.snapshots.clean()

    assert before[-1:] == snapshots(files)


def test_start_after_a_crash_around_a_snapshot_has_all_metadata() -> None:
    files = CrashableFiles()
    config = SMALL | {"metadata.max.retention.bytes": "4000"}
    log = leading(files, config=config)
    write(log, VERSION)
    grow(log, 0, 60)

    with crash_images(files) as images:
        log.prepare_snapshot()()

    assert len(images) > 2
    for image in some(images):
        assert content(log) == content(open_log(CrashableFiles(image=image), config=config))


def test_metadata_log_that_begins_behind_all_snapshots_is_refused() -> None:
    files = MemoryFiles()
    config = SMALL | {"metadata.max.retention.bytes": "4000"}
    log = leading(files, config=config)
    write(log, VERSION)
    grow(log, 0, 120)
    log.close()
    for name in snapshots(files):
        files.remove(HERE / name)

    with pytest.raises(InconsistentSnapshots, match="no snapshot reaches that far") as refused:
        open_log(files, config=config)
    assert refused.traceback, "it refers to the log"
    assert not [*files.in_use]


def test_lost_metadata_log_continues_from_the_snapshot() -> None:
    # A follower of Kafka may crash after it has fetched a snapshot.
    files = MemoryFiles()
    files.make_directory(HERE)
    content = snapshot_batches(
        [VERSION, topic(1)], epoch=7, now_ms=5, last_contained_ms=4, quorum={}
    )
    write_snapshot(HERE, SnapshotId(100, 7), content, files)

    log = leading(files)
    write(log, topic(2))

    assert (8, 102) == (log.epoch, log.end_offset)
    assert ["t1", "t2"] == names(log)
    log.close()
    assert ["t1", "t2"] == names(open_log(files))


def test_leftover_snapshot_files_are_removed_on_start() -> None:
    files = MemoryFiles()
    leading(files).close()
    for suffix in ("-5.checkpoint.part", ".checkpoint.deleted"):
        files.open(HERE / f"00000000000000000009-0000000001{suffix}").close()

    open_log(files)

    assert not [name for name in files.names(HERE) if "checkpoint." in name]


def test_dynamic_quorum_keeps_its_quorum_state_version_and_voters() -> None:
    # Snapshots retain its records (KIP-853).
    files = MemoryFiles()
    files.make_directory(HERE)
    voter = bytes.fromhex(
        "0000 02 00000001 afd8f0dd54c8477dab7559cd6b17391e"
        " 02 0b 434f4e54524f4c4c4552 0a 3132372e302e302e31 b0c7 00 0000 0001 00 00 00"
    )
    quorum = {
        ControlRecordType.KRAFT_VERSION: b"\0\0\0\1\0",
        ControlRecordType.KRAFT_VOTERS: voter,
    }
    first = snapshot_batches([], epoch=0, now_ms=5, last_contained_ms=4, quorum=quorum)
    write_snapshot(HERE, SnapshotId(0, 0), first, files)

    log = leading(files)
    write(log, VERSION)
    log.prepare_snapshot()()

    state = QuorumState.read(HERE, files)
    assert state is not None
    assert (1, 1, 1) == (state.data_version, state.leader_id, state.leader_epoch)
    latest = log.snapshots.latest
    assert latest is not None
    assert voter in files.read_bytes(latest.path(HERE))


configs = st.builds(
    lambda name, value: (config_record(name, value), 0),
    st.sampled_from(["a", "b"]),
    st.none() | st.sampled_from(["1", "2"]),
)
steps = st.lists(
    st.one_of(
        st.lists(configs, min_size=1, max_size=4),
        st.sampled_from(["topic", "remove", "snapshot", "restart", "kill"]),
    ),
    max_size=25,
)


@settings(max_examples=40, deadline=None)
@given(steps)
def test_restart_rebuilds_the_same_metadata_image(made: list[str | list[Versioned]]) -> None:
    files = CrashableFiles()
    log = leading(files, config=SMALL)
    write(log, VERSION)
    for number, step in enumerate(made):
        if isinstance(step, list):
            write(log, *step)
        elif step == "topic":
            write(log, topic(number))
        elif step == "remove":
            for topic_id in list(log.image.topics_by_id)[:1]:
                write(log, (records.RemoveTopicRecord(topic_id=topic_id), 0))
        elif step == "snapshot":
            log.prepare_snapshot()()
        else:
            before, end = content(log), log.end_offset
            if step == "restart":
                log.close()
            else:
                files.crash()
            log = open_log(files, config=SMALL)
            assert (before, end) == (content(log), log.end_offset)
            log.lead()


LARGE = 9 * 1024 * 1024
LARGE_RECORDS: list[Versioned] = [
    (
        records.UserScramCredentialRecord(
            name="u",
            mechanism=1,
            salt=bytes(LARGE),
            stored_key=b"k",
            server_key=b"k",
            iterations=4096,
        ),
        0,
    ),
    (
        records.DelegationTokenRecord(
            owner="User:a",
            requester="User:a",
            renewers=[f"User:{number:04d}" + "r" * 30_000 for number in range(300)],
            issue_timestamp=0,
            max_timestamp=1,
            expiration_timestamp=1,
            token_id="t",
        ),
        0,
    ),
    (
        partition_record(UUID(int=1), directories=[UUID(int=n) for n in range(LARGE // 16)]),
        1,
    ),
]


@pytest.mark.parametrize("atomic", [True, False])
@pytest.mark.parametrize("record", LARGE_RECORDS, ids=lambda each: type(each[0]).__name__)
def test_a_record_that_fits_into_no_batch_is_refused_and_later_ones_are_written(
    record: Versioned, atomic: bool
) -> None:
    files = MemoryFiles()
    log = leading(files)
    write(log, VERSION, topic(0))

    with pytest.raises(RecordListTooLarge, match="larger than the 8388515 bytes"):
        log.append([topic(1), record, topic(2)], atomic=atomic)

    write(log, topic(3))
    assert ["t0", "t3"] == names(log)
    assert content(log) == content(open_log(files))


def test_a_record_with_a_string_that_cannot_be_written_is_refused() -> None:
    log = leading(MemoryFiles())
    write(log, VERSION)
    long = config_record("n", "é" * 16_384)

    with pytest.raises(InvalidRequest, match="a string of 32768 bytes is too long"):
        log.append([topic(1), (long, 0)])

    write(log, topic(2))
    assert ["t2"] == names(log)


@pytest.mark.parametrize("failing", range(4))
@pytest.mark.parametrize("kind", [MessageTooLarge, InvalidRecord, ValueError, MemoryError])
def test_only_an_error_of_the_disk_stops_the_log(
    monkeypatch: pytest.MonkeyPatch, kind: type[Exception], failing: int
) -> None:
    files = MemoryFiles()
    log = leading(files)
    write(log, VERSION, topic(0))
    append, calls = Log.append_as_leader, iter(range(10))

    def appended(self: Log, *args: Any, **options: Any) -> Any:
        if next(calls) == failing:
            raise kind("of this append")
        return append(self, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(divided_batches, "__kwdefaults__", {"max_records": 1})
        patch.setattr(Log, "append_as_leader", appended)
        with pytest.raises(kind):
            log.append([topic(number) for number in range(1, 5)], atomic=False)

    write(log, topic(5))
    assert ["t0", "t5"] == names(log)
    assert content(log) == content(open_log(files))
