"""
A log directory: the files beside the logs in it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from barnabas.storage.directories.cleaner_checkpoint import CLEANER_CHECKPOINT
from barnabas.storage.directories.directory import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from barnabas.storage.errors import CorruptCheckpoint, InvalidLogDirectory, KafkaStorageError
from barnabas.storage.fs.interface import TEMPORARY_SUFFIX
from barnabas.storage.readonly.files import read_if_exists
from barnabas.storage.readonly.log_root import CHECKPOINT_NAMES, CheckpointOffsets, LogRoot
from barnabas.storage.readonly.partition import PartitionDirectory
from barnabas.storage.state_files.checkpoints import CLEAN_SHUTDOWN_FILE
from barnabas.storage.state_files.file_names import DELETE_DIR_SUFFIX, parse_topic_partition_name
from barnabas.storage.state_files.meta_properties import META_PROPERTIES, MetaProperties
from barnabas.storage.topic_partition import TopicPartition
from barnabas.storage.verify import invariants
from barnabas.storage.verify.cluster import KnownTopics
from barnabas.storage.verify.context import DirectoryState, LogContext, check_leftovers
from barnabas.storage.verify.metadata_snapshots import check_metadata_snapshot
from barnabas.storage.verify.report import FileReport, Sink

BOOTSTRAP_CHECKPOINT: Final = "bootstrap.checkpoint"

_INTERNAL_PREFIX: Final = "__"


class RootCheck:
    """
    Checks the files of a log directory, and has the facts about its logs. A file that cannot be
    read counts as missing.
    """

    def __init__(self, root: LogRoot, add: Sink) -> None:
        self.root = root
        self._report = FileReport(add, root.path)
        self.state = self._state()
        self.meta_properties: MetaProperties | None = None
        self._offsets: dict[str, CheckpointOffsets] = {}

    def _state(self) -> DirectoryState:
        root = self.root
        if root.in_use:
            return DirectoryState.IN_USE
        if root.clean_shutdown:
            return DirectoryState.CLEAN
        if RECOVERY_POINT_CHECKPOINT in root.names:
            return DirectoryState.CRASHED
        return DirectoryState.UNKNOWN

    def run(self) -> None:
        self._check_meta_properties()
        self._check_clean_shutdown()
        for name in CHECKPOINT_NAMES:
            self._offsets[name] = self._read_checkpoint(name)
        self._check_names()
        if BOOTSTRAP_CHECKPOINT in self.root.names:
            report = self._report.beside(self.root.path / BOOTSTRAP_CHECKPOINT)
            check_metadata_snapshot(self.root.files, report, epoch=0)

    def context(self, partition: PartitionDirectory, topics: KnownTopics | None) -> LogContext:
        """
        The facts about a log in this directory.
        """
        name = partition.topic_partition
        if partition.mark:
            # The checkpoints are those of the log that is in use.
            live = self.state is DirectoryState.IN_USE
            state = DirectoryState.IN_USE if live else DirectoryState.UNKNOWN
            return LogContext(state=state)
        topic = None if topics is None else topics.get(name.topic)
        policy = "" if topic is None else topic.configs.get("cleanup.policy", "")
        cleaner_offset = self._offsets[CLEANER_CHECKPOINT].get(name)
        return LogContext(
            state=self.state,
            recovery_point=self._offsets[RECOVERY_POINT_CHECKPOINT].get(name),
            log_start_offset=self._offsets[LOG_START_OFFSET_CHECKPOINT].get(name),
            high_watermark=self._offsets[HIGH_WATERMARK_CHECKPOINT].get(name),
            cleaner_offset=cleaner_offset,
            may_be_compacted=(
                "compact" in policy
                or cleaner_offset is not None
                or name.topic.startswith(_INTERNAL_PREFIX)
                or self.state is DirectoryState.UNKNOWN
            ),
            preallocate=None if topic is None else topic.configs.get("preallocate") == "true",
        )

    # Files.

    def _check_meta_properties(self) -> None:
        report = self._report.beside(self.root.path / META_PROPERTIES)
        try:
            self.meta_properties = self.root.meta_properties
        except CorruptCheckpoint as error:
            report.add(invariants.META_PROPERTIES, str(error), "a cluster id and a node id")
            return
        if self.meta_properties is None:
            report.add(invariants.META_PROPERTIES, "no file", "a cluster id and a node id")
        elif self.meta_properties.version == 0:
            # It is from the time of ZooKeeper; no broker starts with it.
            report.add(invariants.META_PROPERTIES, "version 0", "version 1")

    def _check_clean_shutdown(self) -> None:
        path = self.root.path / CLEAN_SHUTDOWN_FILE
        data = read_if_exists(self.root.files, path)
        if data is None:
            return
        try:
            content = json.loads(data) if data else {"version": 0, "brokerEpoch": -1}
            good = isinstance(content, dict) and content.get("version") == 0
            good = good and type(content.get("brokerEpoch")) is int
        except ValueError:
            good = False
        if not good:
            report = self._report.beside(path)
            report.add(
                invariants.CLEAN_SHUTDOWN, repr(data[:100]), "JSON with version 0 and a brokerEpoch"
            )

    def _read_checkpoint(self, name: str) -> CheckpointOffsets:
        report = self._report.beside(self.root.path / name)
        try:
            entries = self.root.checkpoint_entries(name)
        except CorruptCheckpoint as error:
            report.add(
                invariants.CHECKPOINT_FORMAT, str(error), "lines of a partition and an offset"
            )
            return {}
        except KafkaStorageError as error:
            report.add(invariants.UNREADABLE, str(error), "a file that can be read")
            return {}
        here = {path.name for path in self.root.directories}
        offsets: dict[TopicPartition, int] = {}
        for number, (partition, offset) in enumerate(entries):
            if partition in offsets or offset < 0:
                found, expected = f"{partition} with {offset}", "each once, with 0 or more"
                report.add(
                    invariants.CHECKPOINT_FORMAT, found, expected, offset=offset, entry=number
                )
            elif str(partition) not in here and self.state is DirectoryState.CLEAN:
                found, expected = f"{partition}, which is not here", "logs in this directory"
                report.add(invariants.CHECKPOINT_PARTITION, found, expected, entry=number)
            offsets[partition] = offset
        return offsets

    def _check_names(self) -> None:
        leftovers = []
        strange = [path for path in self.root.directories if not is_of_partition(path)]
        for name in self.root.names:
            path = self.root.path / name
            if name.endswith((DELETE_DIR_SUFFIX, TEMPORARY_SUFFIX)):
                leftovers.append(name)
            elif path in strange:
                report = self._report.beside(path)
                report.add(invariants.DIRECTORY_NAME, "a directory", "topic-partition")
        check_leftovers(leftovers, self.state, self._report)


def is_of_partition(path: Path) -> bool:
    """
    Whether the name of a directory is one of a log.
    """
    try:
        parse_topic_partition_name(path)
    except InvalidLogDirectory:
        return False
    return True
