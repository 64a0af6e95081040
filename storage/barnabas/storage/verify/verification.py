"""
Verifying directories: log directories, logs, or several of a node.

While a broker has the lock of a directory, files come, go and grow under the eyes of who looks. The
end of an active segment is then not judged, nor are left-overs. For everything else: what is found
counts only if it is found twice, some time apart.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final
from uuid import UUID

from barnabas.protocol.structs import struct
from barnabas.storage.clock import Clock
from barnabas.storage.directories.directory import RECOVERY_POINT_CHECKPOINT
from barnabas.storage.errors import InvalidLogDirectory
from barnabas.storage.fs.interface import Files
from barnabas.storage.readonly.log_root import LogRoot
from barnabas.storage.readonly.partition import PartitionDirectory
from barnabas.storage.state_files.file_names import (
    DELETE_DIR_SUFFIX,
    LOG_SUFFIX,
    TopicPartition,
    parse_topic_partition_name,
)
from barnabas.storage.state_files.meta_properties import META_PROPERTIES, MetaProperties
from barnabas.storage.state_files.partition_metadata import PARTITION_METADATA
from barnabas.storage.verify import rules
from barnabas.storage.verify.cluster import ReadTopics, Topics, check_topics
from barnabas.storage.verify.context import DirectoryState, LogContext
from barnabas.storage.verify.partition import PartitionCheck
from barnabas.storage.verify.report import FileReport, Report, Sink, Violation
from barnabas.storage.verify.root import RootCheck

SECOND_LOOK_SECONDS: Final = 0.25
"""Longer than a broker takes to put one set of files in the place of another."""


def no_topics(_root: LogRoot) -> Topics | None:
    """
    For who knows nothing of the cluster's metadata.
    """
    return None


@struct(frozen=False)
class _CheckedRoot:
    root: LogRoot
    check: RootCheck


class Verification:
    """
    One look at some directories.

    Args:
        read_topics: reads the metadata of the cluster, if it is in one of the directories.
    """

    def __init__(
        self,
        files: Files,
        clock: Clock,
        report: Report,
        *,
        read_topics: ReadTopics = no_topics,
    ) -> None:
        self._files = files
        self._clock = clock
        self._report = report
        self._read_topics = read_topics
        self.states: dict[Path, DirectoryState] = {}
        """Of the log directories that were looked at, or around the logs that were."""

    def run(self, paths: Sequence[Path]) -> None:
        """
        Raises:
            NotADirectoryError: one of *paths* is no directory.
        """
        for path in paths:
            if not self._files.is_directory(path):
                raise NotADirectoryError(f"{path} is not a directory")
        logs = [path for path in paths if is_log(path, self._files)]
        roots = [path for path in paths if path not in logs]
        if roots:
            self._check_roots(roots)
        for path in logs:
            self._check_single(path)

    # Log directories.

    def _check_roots(self, paths: Sequence[Path]) -> None:
        live = any(LogRoot(path, self._files).in_use for path in paths)
        self._confirm(lambda report: self._check_root_files(paths, report), live)
        topics = self._topics(paths)
        for path in paths:
            known = self._known(path)
            for directory in known.root.directories:
                if not directory.name.endswith(DELETE_DIR_SUFFIX):
                    self._check_log_of(known, directory, topics)

    def _known(self, path: Path) -> _CheckedRoot:
        """
        What the files beside the logs say. What is wrong with them was told, or is not asked for.
        """
        root = LogRoot(path, self._files)
        check = RootCheck(root, lambda _: None)
        check.run()
        return _CheckedRoot(root, check)

    def _topics(self, paths: Sequence[Path]) -> Topics | None:
        for path in paths:
            topics = self._read_topics(LogRoot(path, self._files))
            if topics is not None:
                return topics
        return None

    def _check_root_files(self, paths: Sequence[Path], report: Report) -> None:
        checked = []
        for path in paths:
            root = LogRoot(path, self._files)
            check = RootCheck(root, report.add)
            check.run()
            self.states[path] = check.state
            checked.append(_CheckedRoot(root, check))
        node_id = _check_same(checked, report.add)
        _check_duplicates([each.root for each in checked], report.add)
        topics = self._topics(paths)
        if topics is not None:
            clean = all(each.check.state is DirectoryState.CLEAN for each in checked)
            roots = [each.root for each in checked]
            check_topics(topics, roots, node_id, report.add, clean=clean)

    def _check_log_of(self, known: _CheckedRoot, path: Path, topics: Topics | None) -> None:
        looks = iter([known])

        def check(report: Report) -> None:
            # Before the second look, what lies beside the log may have become another.
            root = next(looks, None) or self._known(known.root.path)
            try:
                partition = PartitionDirectory(path, self._files)
            except (FileNotFoundError, InvalidLogDirectory):
                return
            context = root.check.context(partition, topics)
            PartitionCheck(partition, context, report, self._clock).run()

        self._confirm(check, known.check.state is DirectoryState.IN_USE)

    # Logs.

    def _check_single(self, path: Path) -> None:
        parent = path.absolute().parent
        if self._files.exists(parent / RECOVERY_POINT_CHECKPOINT):
            known = self._known(parent)
            self.states[parent] = known.check.state
            self._check_log_of(known, path, self._topics([parent]))
            return
        partition = PartitionDirectory(path, self._files)
        PartitionCheck(partition, LogContext(), self._report, self._clock).run()

    def _confirm(self, check: Callable[[Report], None], live: bool) -> None:
        """
        Do *check*; if a broker may have been in the way, tell only what a second look finds too.
        """
        if not live:
            check(self._report)
            return
        first: list[Violation] = []
        report = Report(first.append)
        check(report)
        self._report.count(report)
        if not first:
            return
        self._clock.wait(threading.Event(), SECOND_LOOK_SECONDS)
        second: list[Violation] = []
        check(Report(second.append))
        known = {_identity(violation) for violation in first}
        for violation in second:
            if _identity(violation) in known:
                self._report.add(violation)


def _identity(violation: Violation) -> tuple[object, ...]:
    return violation.rule, violation.path, violation.position, violation.offset, violation.entry


def is_log(path: Path, files: Files) -> bool:
    """
    Whether *path* is the directory of one log, and not one with logs in it.
    """
    try:
        parse_topic_partition_name(path.absolute())
    except InvalidLogDirectory:
        return False
    names = files.names(path)
    if META_PROPERTIES in names or RECOVERY_POINT_CHECKPOINT in names:
        return False
    return PARTITION_METADATA in names or any(name.endswith(LOG_SUFFIX) for name in names)


def _check_same(checked: Sequence[_CheckedRoot], add: Sink) -> int | None:
    """
    Whether all log directories are of one node; its id.
    """
    first: MetaProperties | None = None
    seen: dict[UUID, Path] = {}
    for each in checked:
        meta = each.check.meta_properties
        if meta is None:
            continue
        report = FileReport(add, each.root.path / META_PROPERTIES)
        first = first or meta
        if (meta.cluster_id, meta.node_id) != (first.cluster_id, first.node_id):
            report.add(
                rules.META_PROPERTIES_SAME,
                f"cluster {meta.cluster_id}, node {meta.node_id}",
                f"cluster {first.cluster_id}, node {first.node_id}",
            )
        directory_id = meta.directory_id
        if directory_id is not None and directory_id in seen:
            report.add(
                rules.META_PROPERTIES_SAME,
                f"the directory id of {seen[directory_id]}",
                "an id of its own",
            )
        elif directory_id is not None:
            seen[directory_id] = each.root.path
    return None if first is None else first.node_id


def _check_duplicates(roots: Sequence[LogRoot], add: Sink) -> None:
    seen: dict[TopicPartition, Path] = {}
    for root in roots:
        for partition in root.partitions:
            if partition.mark:
                continue
            other = seen.setdefault(partition.topic_partition, partition.path)
            if other != partition.path:
                FileReport(add, partition.path).add(
                    rules.DUPLICATE_LOG, "a log", f"one only, which is in {other.parent}"
                )
