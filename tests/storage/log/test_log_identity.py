from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.log.directory import SegmentDirectory
from barnabas.storage.log.identity import LogIdentity
from barnabas.storage.state_files.partition_metadata import (
    PARTITION_METADATA,
    read_partition_metadata,
)
from barnabas.storage.threads.deferred_work import DeferredWork
from barnabas.storage.topic_partition import TopicPartition
from barnabas.testing.disks.crashable import CrashableFiles
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.clock import StillClock
from tests.support.crash.points import ALL, HALF, NONE, crash_images
from tests.support.some import some

D = Path("/data/t-0")
ID = UUID(int=6)


def place(files: MemoryFiles) -> SegmentDirectory:
    clock = StillClock()
    files.make_directory(D)
    return SegmentDirectory(
        D,
        TopicPartition("t", 0),
        LogConfig(),
        files=files,
        clock=clock,
        deferred=DeferredWork(clock),
    )


def in_file(files: MemoryFiles) -> UUID:
    return read_partition_metadata(files, D).topic_id


def test_partition_metadata_is_written_once_and_in_the_background() -> None:
    """
    The append path asks for it before every append.
    """
    files = FailingFiles()
    identity = LogIdentity(place(files), None)
    identity.write()
    identity.assign(ID)
    assert identity.is_unwritten
    assert not files.exists(D / PARTITION_METADATA)
    identity.write()
    assert ID == in_file(files)

    files.fail(forever=True)

    identity.write()
    assert not identity.is_unwritten


def test_failed_write_of_partition_metadata_is_retried() -> None:
    files = FailingFiles()
    identity = LogIdentity(place(files), None)
    identity.assign(ID)
    files.fail()

    with pytest.raises(KafkaStorageError):
        identity.write()
    identity.write()

    assert ID == in_file(files)


def test_partition_metadata_is_written_into_the_renamed_directory() -> None:
    files = MemoryFiles()
    directory = place(files)
    identity = LogIdentity(directory, None)
    identity.assign(ID)

    directory.rename("t-0.abc-delete")
    identity.write()

    assert files.exists(D.with_name("t-0.abc-delete") / PARTITION_METADATA)


def test_partition_metadata_is_whole_or_missing_after_a_crash() -> None:
    files = CrashableFiles()
    directory = place(files)
    files.sync_directory(D.parent)
    identity = LogIdentity(directory, None)
    identity.assign(ID)

    with crash_images(files, NONE, HALF, ALL) as images:
        identity.write()

    assert len(images) > 2
    for image in some(images):
        after = CrashableFiles(image=image)
        directory = place(after)
        assert not after.exists(D / PARTITION_METADATA) or ID == in_file(after)
        again = LogIdentity(directory, None)
        again.assign(ID)
        again.write()
        after.crash()
        assert ID == in_file(after)
