"""
The work of a broker that starts after a crash and stops again.

The engine itself does it. It loads the logs without the file of a clean shutdown, so it recovers
all segments from the recovery point on, removes or finishes left-overs, and writes new snapshots
and checkpoints. Files that Kafka's recovery does not read, for example segments below the recovery
point, do not change. No log is taken for a stray: only a start decides that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from barnabas.protocol.records.crc32c import crc32c
from barnabas.protocol.structs import NamedTuple
from barnabas.storage.cleaner.settings import CleanerSettings
from barnabas.storage.clock import Clock
from barnabas.storage.config.log_config import COMPACT, LogConfig
from barnabas.storage.config.option_values import ConfigError
from barnabas.storage.directories.directory import LOCK_FILE
from barnabas.storage.errors import KafkaStorageError, LogDirectoryLocked
from barnabas.storage.fs.interface import Files
from barnabas.storage.fs.log_dir_failure import LogDirFailureChannel
from barnabas.storage.manager.manager import LogManager, LogManagerSettings
from barnabas.storage.readonly.files import opened
from barnabas.storage.readonly.log_root import LogRoot
from barnabas.storage.recovery.opening import open_log
from barnabas.storage.state_files.checkpoints import CLEAN_SHUTDOWN_FILE
from barnabas.storage.state_files.file_names import DELETED_SUFFIX, LOG_SUFFIX
from barnabas.storage.units import LONG_MAX
from barnabas.storage.uuids import METADATA_TOPIC_ID
from barnabas.storage.verify.cluster import KnownTopics, ReadTopics
from barnabas.storage.verify.root import RootCheck
from barnabas.storage.verify.verification import is_log

_CHUNK: Final = 1 << 20

Tell = Callable[[str], None]


class _File(NamedTuple):
    """
    The state of a file, to find changes. A segment is only cut, renamed or removed.
    """

    size: int
    checksum: int


def repair(
    paths: Sequence[Path], *, files: Files, clock: Clock, read_topics: ReadTopics, tell: Tell
) -> None:
    """
    Repair log directories, all of one node.

    Args:
        read_topics: reads the settings of topics.
        tell: takes the warnings of the engine, and at the end a sentence for each changed file.

    Raises:
        ValueError: one of *paths* is the directory of a single log.
        LogDirectoryLocked: a broker uses one of them.
        KafkaStorageError: a file cannot be read or written, or has another form.
        InvalidLogDirectory: a partition has two logs, or a directory is not that of a partition.
    """
    for path in paths:
        if is_log(path, files):
            raise ValueError(f"{path} is the log of one partition; name its log directory")
    roots = [LogRoot(path, files) for path in paths]
    if used := next((root for root in roots if root.in_use), None):
        raise LogDirectoryLocked(used.path)
    topics = next((found for root in roots if (found := read_topics(root)) is not None), None)
    configs = _configs(roots, topics)
    before = dict(_contents(roots, files))
    failures = LogDirFailureChannel()
    manager = LogManager(
        paths,
        files=files,
        clock=clock,
        failures=failures,
        default_config=LogConfig(),
        settings=_SETTINGS,
    )

    def prepare() -> None:
        for root in roots:
            _open_metadata_log(root, files, clock, failures)
            files.remove(root.path / CLEAN_SHUTDOWN_FILE)

    with _telling(tell):
        all_closed = _recover(manager, configs, prepare)
    _tell_changes(before, dict(_contents([LogRoot(path, files) for path in paths], files)), tell)
    if not all_closed or manager.directories.offline:
        offline = ", ".join(map(str, manager.directories.offline))
        raise KafkaStorageError(f"The repair is incomplete: the disk failed in {offline}")


def _recover(
    manager: LogManager, configs: Mapping[str, LogConfig], prepare: Callable[[], None]
) -> bool:
    """
    Call *prepare*, start and stop; return whether all logs were closed.
    """
    try:
        prepare()
        manager.load(configs, lambda _topic_id, _partition: False)
        for log in manager.logs().values():
            log.flush(force_flush_active_segment=True)
    finally:
        all_closed = manager.shutdown()
    return all_closed


class _Telling(logging.Handler):
    """
    Takes the warnings of the engine during the recovery.
    """

    def __init__(self, tell: Tell) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(record.getMessage())


@contextmanager
def _telling(tell: Tell) -> Iterator[None]:
    handler = _Telling(tell)
    engine = logging.getLogger("barnabas.storage")
    engine.addHandler(handler)
    try:
        yield
    finally:
        engine.removeHandler(handler)


_SETTINGS: Final = LogManagerSettings(
    retention_check_ms=LONG_MAX,
    flush_check_ms=LONG_MAX,
    recovery_point_checkpoint_ms=LONG_MAX,
    log_start_offset_checkpoint_ms=LONG_MAX,
    high_watermark_checkpoint_ms=LONG_MAX,
    producer_id_expiration_ms=86_400_000,
    producer_id_expiration_check_ms=LONG_MAX,
    initial_task_delay_ms=LONG_MAX,
    recovery_threads_per_directory=1,
    # The cleaner is never started.
    cleaner=CleanerSettings(dedupe_buffer_bytes=1 << 20),
)


def _configs(roots: Sequence[LogRoot], topics: KnownTopics | None) -> Mapping[str, LogConfig]:
    """
    The settings of each topic that recovery uses.

    A log that may be compacted must not be taken for one that has lost batches.
    """
    configs = {}
    for root in roots:
        check = RootCheck(root, lambda _: None)
        check.run()
        for partition in root.partitions:
            name = partition.topic_partition.topic
            known = {} if topics is None or name not in topics else topics[name].configs
            try:
                config = LogConfig.parse(known)
            except ConfigError:
                config = LogConfig()
            if check.context(partition, topics).may_be_compacted and not config.compact:
                config = config.overridden({"cleanup.policy": COMPACT})
            if name not in configs or config.compact:
                configs[name] = config
    return configs


def _open_metadata_log(
    root: LogRoot, files: Files, clock: Clock, failures: LogDirFailureChannel
) -> None:
    metadata = root.cluster_metadata
    if metadata is None:
        return
    log = open_log(
        metadata.path,
        LogConfig(),
        files=files,
        clock=clock,
        failures=failures,
        topic_id=METADATA_TOPIC_ID,
        had_clean_shutdown=False,
    )
    log.flush(force_flush_active_segment=True)
    log.close()


def _contents(roots: Sequence[LogRoot], files: Files) -> Iterator[tuple[Path, _File]]:
    for root in roots:
        for name in root.names:
            path = root.path / name
            if not files.is_directory(path):
                if name != LOCK_FILE:
                    yield path, _file(path, files)
                continue
            for inner in files.names(path):
                if not files.is_directory(path / inner):
                    yield path / inner, _file(path / inner, files)


def _file(path: Path, files: Files) -> _File:
    checksum = 0
    with opened(files, path) as file:
        size = file.size()
        position = size if path.name.endswith(LOG_SUFFIX) else 0
        while position < size and (data := file.read(position, _CHUNK)):
            checksum = crc32c(data, checksum)
            position += len(data)
    return _File(size, checksum)


def _tell_changes(before: Mapping[Path, _File], after: Mapping[Path, _File], tell: Tell) -> None:
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        marked = path.with_name(path.name + DELETED_SUFFIX)
        if old == new:
            continue
        if old is None:
            assert new is not None, "the file is in one of both"
            original = path.with_name(path.name.removesuffix(DELETED_SUFFIX))
            if original == path or original in after or original not in before:
                tell(f"made {path}, {new.size} bytes")
        elif new is None:
            if marked in after and marked not in before:
                tell(f"set {path} aside as {marked.name}")
            else:
                tell(f"removed {path}, {old.size} bytes")
        elif new.size < old.size and path.name.endswith(LOG_SUFFIX):
            tell(f"cut {path} from {old.size} to {new.size} bytes")
        else:
            tell(f"rewrote {path}, {new.size} bytes instead of {old.size}")
