"""
The topic that a log belongs to.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import threading
from uuid import UUID

from barnabas.storage.errors import InconsistentTopicId
from barnabas.storage.log.directory import SegmentDirectory
from barnabas.storage.state_files.partition_metadata import write_partition_metadata


class LogIdentity:
    """
    The id of the topic, in memory and in ``partition.metadata``.

    Without the file the log is a stray at the next start, so it is written before any record.

    Safe from any thread.
    """

    __slots__ = ("_directory", "_writing", "is_unwritten", "topic_id")

    def __init__(self, directory: SegmentDirectory, topic_id: UUID | None) -> None:
        """
        Args:
            topic_id: the one in the file; None if there is no file.
        """
        self._directory = directory
        self._writing = threading.Lock()
        self.topic_id = topic_id
        """None until it is assigned."""
        self.is_unwritten = False

    def assign(self, topic_id: UUID) -> None:
        """
        Note that the log belongs to this topic; the file is written soon.

        Raises:
            InconsistentTopicId: it belongs to another one.
        """
        if self.topic_id is None:
            self.topic_id = topic_id
            self.is_unwritten = True
            self._directory.deferred.soon(self.write)
        elif self.topic_id != topic_id:
            raise InconsistentTopicId(
                f"Tried to assign topic ID {topic_id} to log for topic partition "
                f"{self._directory.topic_partition}, but log already contained topic ID "
                f"{self.topic_id}"
            )

    def write(self) -> None:
        """
        Write the id if the file does not have it; it survives a crash when this returns.
        """
        if not self.is_unwritten:
            return
        with self._writing:
            if self.is_unwritten and self.topic_id is not None:
                files, path = self._directory.files, self._directory.path
                write_partition_metadata(files, path, self.topic_id)
                # The directory of the log is as new as the file.
                files.sync_directory(path.parent)
                self.is_unwritten = False
