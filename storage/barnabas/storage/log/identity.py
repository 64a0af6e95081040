"""
To which topic a log belongs.
"""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from barnabas.storage.errors import InconsistentTopicId
from barnabas.storage.log.directory import SegmentDirectory
from barnabas.storage.state_files.partition_metadata import (
    PARTITION_METADATA,
    PartitionMetadataFile,
    read_partition_metadata,
)


class LogIdentity:
    """
    The id of the topic, in memory and in ``partition.metadata``.

    Without the file the log is a stray at the next start, so it is written before any record.
    """

    __slots__ = ("_directory", "_file", "is_unwritten", "topic_id")

    def __init__(self, directory: SegmentDirectory) -> None:
        """
        Raises:
            CorruptCheckpoint: the file does not say what it should.
        """
        self._directory = directory
        self._file: PartitionMetadataFile | None = None
        """None unless there was none at the start."""
        self.topic_id: UUID | None = None
        """None as long as nobody has said."""
        if directory.holds(PARTITION_METADATA):
            self.topic_id = read_partition_metadata(directory.files, directory.path).topic_id
        self.is_unwritten = False

    def assign(self, topic_id: UUID) -> None:
        """
        The log belongs to this topic. That is written soon.

        Raises:
            InconsistentTopicId: it belongs to another one.
        """
        if self.topic_id is not None:
            if self.topic_id != topic_id:
                raise InconsistentTopicId(
                    f"Tried to assign topic ID {topic_id} to log for topic partition "
                    f"{self._directory.topic_partition}, but log already contained topic ID "
                    f"{self.topic_id}"
                )
            return
        self.topic_id = topic_id
        file = PartitionMetadataFile(self._directory.files, self._directory.path)
        file.record(topic_id)
        self._file = file
        self.is_unwritten = True
        self._directory.deferred.soon(self.write)

    def write(self) -> None:
        """
        Write the id, unless that has been done; it survives a crash then.
        """
        if self.is_unwritten and self._file is not None:
            self._file.maybe_flush()
            # The directory of the log is as new as the file.
            self._directory.files.sync_directory(self._directory.path.parent)
            self.is_unwritten = False

    def update_parent_dir(self, directory: Path) -> None:
        """
        Somebody has renamed the directory of the log.
        """
        if self._file is not None:
            self._file.update_parent_dir(directory)
