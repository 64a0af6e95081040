from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.errors import CorruptCheckpoint, KafkaStorageError
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.state_files import checkpoints
from barnabas.storage.state_files.checkpoints import (
    CleanShutdownFile,
    EpochEntry,
    LeaderEpochCheckpointFile,
    OffsetCheckpointFile,
)
from barnabas.storage.topic_partition import TopicPartition
from barnabas.testing.disks.crashable import CrashableFiles
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.crash.points import ALL, HALF, NONE, crash_images
from tests.support.some import some

D = Path("/data")
PATH = D / "recovery-point-offset-checkpoint"
OFFSETS = {TopicPartition("a.b_c", 3): 7, TopicPartition("t", 0): 5}


def disk(content: bytes | None = None) -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory(D / "t-0")
    if content is not None:
        files.write_atomically(PATH, content)
    return files


def test_checkpoint_has_kafkas_bytes() -> None:
    files = disk()
    checkpoint = OffsetCheckpointFile(files, PATH)

    checkpoint.write(OFFSETS)

    assert b"0\n2\na.b_c 3 7\nt 0 5\n" == files.read_bytes(PATH)
    assert OFFSETS == checkpoint.read()


def test_opening_creates_an_empty_checkpoint() -> None:
    files = disk()

    assert {} == OffsetCheckpointFile(files, PATH).read()
    assert b"" == files.read_bytes(PATH)
    files.write_atomically(PATH, b"0\n1\nt 0 5\n")
    assert {TopicPartition("t", 0): 5} == OffsetCheckpointFile(files, PATH).read()


@pytest.mark.parametrize(
    "content",
    [
        b"0\n1\nt 0 5\n",
        b"0\n1\nt 0 5",
        b"0\r\n1\r\nt 0 5\r\n",
        b"0\n1\nt \t 0   5 \n",
        b"+0\n01\nt 0 +5\n",
    ],
)
def test_checkpoint_reader_accepts_other_line_ends_and_white_space(content: bytes) -> None:
    """
    An editor may have left them.
    """
    assert {TopicPartition("t", 0): 5} == OffsetCheckpointFile(disk(content), PATH).read()


@pytest.mark.parametrize("content", [b"", b"0", b"0\n", b"0\n0", b"0\n0\n"])
def test_short_checkpoint_has_no_entries(content: bytes) -> None:
    assert {} == OffsetCheckpointFile(disk(content), PATH).read()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"1\n0\n", "Unrecognised version:1, expected version: 0"),
        (b"garbage\n", "Malformed line .*: garbage"),
        (b"0\nx\n", "Malformed line .*: x"),
        (b"0\n 1\nt 0 5\n", "Malformed line .*:  1"),
        (b"0\n1\nt 0\n", "Malformed line .*: t 0"),
        (b"0\n1\nt 0 5 6\n", "Malformed line .*: t 0 5 6"),
        (b"0\n1\nt x 5\n", "Malformed line .*: t x 5"),
        (b"0\n1\nt 0 1_0\n", "Malformed line .*: t 0 1_0"),
        (b"0\n1\n t 0 5\n", "Malformed line"),
        (b"0\n1\nt 0 5\n\n", "Malformed line"),
        (b"\n", "Malformed line"),
        (b"0\n2\nt 0 5\n", r"Expected \[2\] entries .* found only \[1\]"),
        (b"0\n0\nt 0 5\n", r"Expected \[0\] entries .* found only \[1\]"),
        (b"0\n-1\n", r"Expected \[-1\] entries"),
        (b"\xff\n", "is not UTF-8"),
    ],
)
def test_malformed_checkpoint_is_refused(content: bytes, sentence: str) -> None:
    with pytest.raises(CorruptCheckpoint, match=sentence) as refusal:
        OffsetCheckpointFile(disk(content), PATH).read()

    assert PATH == refusal.value.path
    assert str(PATH) in str(refusal.value)


def test_missing_checkpoint_is_a_storage_error() -> None:
    """
    The file existed when the checkpoint was opened.
    """
    files = disk()
    checkpoint = OffsetCheckpointFile(files, PATH)
    files.remove(PATH)

    with pytest.raises(KafkaStorageError, match="is gone"):
        checkpoint.read()


@given(
    st.dictionaries(
        st.builds(
            TopicPartition,
            st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True),
            st.integers(0, 2**31 - 1),
        ),
        st.integers(-1, 2**63 - 1),
    )
)
def test_written_checkpoint_can_be_read(offsets: dict[TopicPartition, int]) -> None:
    checkpoint = OffsetCheckpointFile(disk(), PATH)

    checkpoint.write(offsets)

    assert offsets == checkpoint.read()


def test_checkpoint_is_the_old_or_the_new_one_after_a_crash() -> None:
    files = CrashableFiles()
    files.make_directory(D)
    checkpoint = OffsetCheckpointFile(files, PATH)
    old = {TopicPartition("t", 0): 4}
    checkpoint.write(old)

    with crash_images(files, NONE, HALF, ALL) as images:
        checkpoint.write(OFFSETS)

    found = []
    for image in some(images):
        after = CrashableFiles(image=image)
        checkpoint = OffsetCheckpointFile(after, PATH)
        found.append(checkpoint.read())
        checkpoint.write(OFFSETS)
        after.crash()
        assert OFFSETS == OffsetCheckpointFile(after, PATH).read()
    assert old in found
    assert OFFSETS in found
    assert all(offsets in (old, OFFSETS) for offsets in some(found))


@pytest.mark.parametrize("step", range(6))
def test_checkpoint_is_the_old_or_the_new_one_after_an_error(step: int) -> None:
    files = FailingFiles()
    files.make_directory(D)
    checkpoint = OffsetCheckpointFile(files, PATH)
    old = {TopicPartition("t", 0): 4}
    checkpoint.write(old)

    files.fail(step, only=frozenset({"create", "truncate", "write", "sync", "rename"}))
    try:
        checkpoint.write(OFFSETS)
    except KafkaStorageError:
        assert old == checkpoint.read()
    else:
        assert step == 5
        assert OFFSETS == checkpoint.read()


def test_leader_epoch_checkpoint_moves_with_its_log() -> None:
    files = disk()
    checkpoint = LeaderEpochCheckpointFile(files, D / "t-0")

    checkpoint.write([EpochEntry(0, 0), EpochEntry(2, 150)])

    path = D / "t-0" / "leader-epoch-checkpoint"
    assert b"0\n2\n0 0\n2 150\n" == files.read_bytes(path)
    files.rename(D / "t-0", D / "t-1")
    checkpoint.update_parent_dir(D / "t-1")
    assert D / "t-1" / "leader-epoch-checkpoint" == checkpoint.path
    assert [EpochEntry(0, 0), EpochEntry(2, 150)] == checkpoint.read()


def test_number_of_remembered_leader_epoch_files_is_bounded() -> None:
    checkpoint = LeaderEpochCheckpointFile(disk(), D / "t-0")
    for offset in range(2 * checkpoints._MOST_KNOWN):
        checkpoint.write([EpochEntry(1, offset)])

        assert [EpochEntry(1, offset)] == list(checkpoint.read())
        assert len(checkpoints._known_epochs) <= checkpoints._MOST_KNOWN


def test_leader_epoch_checkpoint_of_a_moved_log_is_not_written() -> None:
    """
    The log is about to be deleted. Other errors are raised.
    """
    files = FailingFiles()
    files.make_directory(D / "t-0")
    checkpoint = LeaderEpochCheckpointFile(files, D / "t-0")

    files.fail(only=frozenset({"write"}))
    with pytest.raises(KafkaStorageError):
        checkpoint.write_if_dir_exists([EpochEntry(0, 0)])
    files.rename(D / "t-0", D / "t-0.abc-delete")
    checkpoint.write_if_dir_exists([EpochEntry(0, 0)])

    assert not files.exists(D / "t-0")
    with pytest.raises(KafkaStorageError):
        checkpoint.write([EpochEntry(0, 0)])


@pytest.mark.scenario(71)
def test_clean_shutdown_file_is_one_line_of_json() -> None:
    files = CrashableFiles()
    files.make_directory(D)
    mark = CleanShutdownFile(files, D)
    assert not mark.exists()
    assert mark.read() is None

    mark.write(205)
    files.crash()

    assert mark.exists()
    assert b'{"version":0,"brokerEpoch":205}' == files.read_bytes(D / ".kafka_cleanshutdown")
    assert 205 == mark.read()
    mark.delete()
    mark.delete()
    files.crash()
    assert not mark.exists()


@pytest.mark.parametrize(
    ("content", "epoch"),
    [
        (b"", None),
        (b"not json", None),
        (b"[]", None),
        (b"\xff", None),
        (b'{"version":0}', None),
        (b'{"version":0,"brokerEpoch":"7"}', None),
        (b'{"version":0,"brokerEpoch":true}', None),
        (b'{"version":1,"brokerEpoch":7,"more":{}}', 7),
        (b'{"brokerEpoch":-1}', -1),
    ],
)
def test_clean_shutdown_file_counts_whatever_its_content(content: bytes, epoch: int | None) -> None:
    """
    Older brokers left an empty file, without a broker epoch.
    """
    files = disk()
    files.write_atomically(D / ".kafka_cleanshutdown", content)
    mark = CleanShutdownFile(files, D)

    assert mark.exists()
    assert epoch == mark.read()


def test_concurrent_checkpoint_writes_do_not_interfere(tmp_path: Path) -> None:
    """
    A deleted topic is removed from a checkpoint while the background thread writes it.
    """
    checkpoint = OffsetCheckpointFile(DiskFiles(), tmp_path / PATH.name)

    with ThreadPoolExecutor(4) as pool:
        written = [pool.submit(checkpoint.write, {TopicPartition("t", 0): n}) for n in range(200)]
        failures = [error for each in written if (error := each.exception()) is not None]

    assert [] == failures
    assert [TopicPartition("t", 0)] == list(checkpoint.read())
