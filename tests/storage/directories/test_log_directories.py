from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.directories.directories import LogDirectories
from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.fs.log_dir_failure import LogDirFailureChannel
from barnabas.storage.state_files.checkpoints import CleanShutdownFile
from barnabas.testing.disks.memory import MemoryFiles

A, B, C = Path("/a"), Path("/b"), Path("/c")


def directories(files: MemoryFiles, *paths: Path) -> LogDirectories:
    return LogDirectories(paths, files, LogDirFailureChannel())


def with_a_file_at(path: Path) -> MemoryFiles:
    """
    A disk on which *path* cannot be a directory.
    """
    files = MemoryFiles()
    files.write_atomically(path, b"")
    return files


def test_unusable_log_directory_is_offline_from_the_start() -> None:
    """
    It is not reported as a failure, as none of its logs was ever loaded.
    """
    found = directories(with_a_file_at(B), A, B, C)

    assert ((A, B, C), [A, C], (B,)) == (found.all, list(found.live), found.offline)
    assert found.failures.has_offline_log_dir(B)
    assert [] == found.failures.take_news()


def test_error_names_all_log_directories_if_none_can_be_used() -> None:
    with pytest.raises(KafkaStorageError, match="None of the log directories can be used: /a"):
        directories(with_a_file_at(A), A)


def test_directory_taken_offline_stays_offline() -> None:
    found = directories(MemoryFiles(), A, B)

    taken = found.take_offline(A)

    assert taken is not None
    assert A == taken.path
    assert found.take_offline(A) is None
    assert ([B], (A,)) == (list(found.live), found.offline)
    with pytest.raises(KafkaStorageError, match="/a is offline"):
        found.volume_bytes(A)
    assert [B] == found.next_log_dirs({})


def test_new_log_is_not_created_in_a_directory_that_has_just_failed() -> None:
    """
    This applies even before the log manager handles the report. If all directories have failed, the
    error names one.
    """
    found = directories(MemoryFiles(), A, B)
    assert [A, B] == found.next_log_dirs({})

    found.failed(A, "the disk is gone", KafkaStorageError("the disk is gone"))
    assert [B] == found.next_log_dirs({})

    found.failed(B, "the disk is gone", KafkaStorageError("the disk is gone"))
    assert [A, B] == found.next_log_dirs({})


@pytest.mark.parametrize(("epochs", "expected"), [((7, 7), 7), ((7, 8), None), ((7, None), None)])
def test_clean_shutdown_epoch_requires_the_file_in_every_directory(
    epochs: tuple[int | None, ...], expected: int | None
) -> None:
    files = MemoryFiles()
    directories(files, A, B).release()
    for path, epoch in zip((A, B), epochs, strict=True):
        if epoch is not None:
            CleanShutdownFile(files, path).write(epoch)

    found = directories(files, A, B)

    assert expected == found.clean_shutdown_epoch()
    found.take_offline(A)
    assert found.clean_shutdown_epoch() is None
