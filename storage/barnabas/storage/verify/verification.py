"""
Verifying log directories and single logs, all of one node together.

While a broker has the lock of a directory, it creates, deletes and appends to files. The end of an
active segment is then not checked, nor are left-overs. Every other violation counts only if it is
found twice, some time apart.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final
from uuid import UUID

from barnabas.storage.clock import Clock
from barnabas.storage.directories.directory import RECOVERY_POINT_CHECKPOINT
from barnabas.storage.errors import InvalidLogDirectory
from barnabas.storage.fs.interface import Files
from barnabas.storage.readonly.log_root import LogRoot
from barnabas.storage.readonly.partition import PartitionDirectory
from barnabas.storage.state_files.file_names import DELETE_DIR_SUFFIX, LOG_SUFFIX
from barnabas.storage.state_files.meta_properties import META_PROPERTIES, MetaProperties
from barnabas.storage.state_files.partition_metadata import PARTITION_METADATA
from barnabas.storage.topic_partition import TopicPartition
from barnabas.storage.verify import invariants
from barnabas.storage.verify.cluster import KnownTopics, ReadTopics, check_topics
from barnabas.storage.verify.context import DirectoryState, LogContext
from barnabas.storage.verify.partition import PartitionCheck
from barnabas.storage.verify.report import FileReport, Sink, VerifyReport, Violation
from barnabas.storage.verify.root import RootCheck, is_of_partition

SECOND_LOOK_SECONDS: Final = 0.25
"""This is longer than a broker takes to replace one set of files by another."""


class Verification:
    """
    One verification of some directories.

    Args:
        read_topics: reads the metadata of the cluster, if it is in one of the directories.
    """

    def __init__(
        self, files: Files, clock: Clock, report: VerifyReport, *, read_topics: ReadTopics
    ) -> None:
        self._files = files
        self._clock = clock
        self._report = report
        self._read_topics = read_topics
        self.states: dict[Path, DirectoryState] = {}
        """The states of the log directories, those around single logs included."""

    def run(self, paths: Sequence[Path]) -> None:
        """
        Raises:
            NotADirectoryError: one of *paths* is not a directory.
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

    def _known(self, path: Path) -> RootCheck:
        """
        The facts in the files beside the logs. Their own violations are not reported here.
        """
        known = RootCheck(LogRoot(path, self._files), lambda _: None)
        known.run()
        return known

    def _topics(self, paths: Sequence[Path]) -> KnownTopics | None:
        for path in paths:
            topics = self._read_topics(LogRoot(path, self._files))
            if topics is not None:
                return topics
        return None

    def _check_root_files(self, paths: Sequence[Path], report: VerifyReport) -> None:
        checked = []
        for path in paths:
            check = RootCheck(LogRoot(path, self._files), report.add)
            check.run()
            self.states[path] = check.state
            checked.append(check)
        roots = [each.root for each in checked]
        node_id = _check_same(checked, report.add)
        _check_duplicates(roots, report.add)
        topics = self._topics(paths)
        if topics is not None:
            clean = all(each.state is DirectoryState.CLEAN for each in checked)
            check_topics(topics, roots, node_id, report.add, clean=clean)

    def _check_log_of(self, known: RootCheck, path: Path, topics: KnownTopics | None) -> None:
        looks = iter([known])

        def check(report: VerifyReport) -> None:
            # The files beside the log may change before the second check.
            root = next(looks, None) or self._known(known.root.path)
            try:
                partition = PartitionDirectory(path, self._files)
            except (FileNotFoundError, InvalidLogDirectory):
                return
            context = root.context(partition, topics)
            PartitionCheck(partition, context, report, self._clock).run()

        self._confirm(check, known.state is DirectoryState.IN_USE)

    # Logs.

    def _check_single(self, path: Path) -> None:
        parent = path.absolute().parent
        if self._files.exists(parent / RECOVERY_POINT_CHECKPOINT):
            known = self._known(parent)
            self.states[parent] = known.state
            self._check_log_of(known, path, self._topics([parent]))
            return
        partition = PartitionDirectory(path, self._files)
        PartitionCheck(partition, LogContext(), self._report, self._clock).run()

    def _confirm(self, check: Callable[[VerifyReport], None], live: bool) -> None:
        """
        Run *check*; with a running broker, report only the violations that a second run finds too.
        """
        if not live:
            check(self._report)
            return
        first: list[Violation] = []
        report = VerifyReport(first.append)
        check(report)
        self._report.count(report)
        if not first:
            return
        self._clock.wait(threading.Event(), SECOND_LOOK_SECONDS)
        second: list[Violation] = []
        check(VerifyReport(second.append))
        known = {_identity(violation) for violation in first}
        for violation in second:
            if _identity(violation) in known:
                self._report.add(violation)


def _identity(violation: Violation) -> tuple[object, ...]:
    return violation.rule, violation.path, violation.position, violation.offset, violation.entry


def is_log(path: Path, files: Files) -> bool:
    """
    Whether *path* is the directory of one log, and not a directory with logs in it.
    """
    if not is_of_partition(path.absolute()):
        return False
    names = files.names(path)
    if META_PROPERTIES in names or RECOVERY_POINT_CHECKPOINT in names:
        return False
    return PARTITION_METADATA in names or any(name.endswith(LOG_SUFFIX) for name in names)


def _check_same(checked: Sequence[RootCheck], add: Sink) -> int | None:
    """
    Check that all log directories are of one node, and return its id.
    """
    first: MetaProperties | None = None
    seen: dict[UUID, Path] = {}
    for each in checked:
        meta = each.meta_properties
        if meta is None:
            continue
        report = FileReport(add, each.root.path / META_PROPERTIES)
        first = first or meta
        if (meta.cluster_id, meta.node_id) != (first.cluster_id, first.node_id):
            report.add(
                invariants.META_PROPERTIES_SAME,
                f"cluster {meta.cluster_id}, node {meta.node_id}",
                f"cluster {first.cluster_id}, node {first.node_id}",
            )
        directory_id = meta.directory_id
        if directory_id is not None and directory_id in seen:
            report.add(
                invariants.META_PROPERTIES_SAME,
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
                    invariants.DUPLICATE_LOG, "a log", f"one only, which is in {other.parent}"
                )
