"""
``cleaner-offset-checkpoint``: how far the logs of a log directory are clean.
"""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Final

from barnabas.storage.fs.interface import Files
from barnabas.storage.state_files.checkpoints import OffsetCheckpointFile
from barnabas.storage.topic_partition import TopicPartition

CLEANER_CHECKPOINT: Final = "cleaner-offset-checkpoint"


class CleanerCheckpoint:
    """
    The first dirty offset of each log that was cleaned.

    Invariants:

    1. ``offsets`` is the content of the file, unless writing it has failed.

    Not safe to use from two threads: the manager of the cleaner holds its lock.
    """

    def __init__(self, files: Files, directory: Path) -> None:
        """
        Read the file, which is created empty if it is missing.

        Raises:
            KafkaStorageError: it cannot be made or read, or is malformed.
        """
        self._file = OffsetCheckpointFile(files, directory / CLEANER_CHECKPOINT)
        self.offsets = self._file.read()

    def update(
        self, known: Container[TopicPartition], *, put: tuple[TopicPartition, int] | None = None
    ) -> None:
        """
        Write the file, without the entries of logs that are not *known*.

        Raises:
            KafkaStorageError: it cannot be written.
        """
        offsets = {
            partition: offset for partition, offset in self.offsets.items() if partition in known
        }
        if put is not None:
            offsets[put[0]] = put[1]
        self.offsets = offsets
        self._file.write(offsets)
