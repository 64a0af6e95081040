"""
The files of a segment, as one thing that is renamed, flushed, closed and removed.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
from pathlib import Path
from typing import Protocol

from barnabas.storage.fs.interface import Files
from barnabas.storage.index.lazy import LazyIndex
from barnabas.storage.index.offset_index import OffsetIndex
from barnabas.storage.index.time_index import TimeIndex
from barnabas.storage.index.txn_index import TransactionIndex
from barnabas.storage.segment.records import FileRecords
from barnabas.storage.state_files import file_names as log_files
from barnabas.storage.threads.deferred_work import run_all

logger = logging.getLogger(__name__)


def delete_files_if_exist(
    files: Files, directory: Path, base_offset: int, suffix: str = ""
) -> None:
    """
    Remove the files that a segment of *base_offset* would have.
    """
    for name in (
        log_files.offset_index_file,
        log_files.time_index_file,
        log_files.transaction_index_file,
        log_files.log_file,
    ):
        files.remove(name(directory, base_offset, suffix))


class SegmentConfig(Protocol):
    """
    What a segment wants to know of the topic's configuration.
    """

    @property
    def segment_index_bytes(self) -> int: ...

    @property
    def index_interval_bytes(self) -> int: ...

    def random_segment_jitter(self) -> int: ...


class SegmentFiles:
    """
    Batches, two indexes that are opened when needed, and aborted transactions.

    Invariants:

    1. All four carry the same base offset and the same suffix.
    2. Removing the files ends no read: they are given back when the last reader has gone.
    """

    __slots__ = (
        "_files",
        "_lazy_offset_index",
        "_lazy_time_index",
        "base_offset",
        "log",
        "txn_index",
    )

    def __init__(
        self,
        files: Files,
        directory: Path,
        base_offset: int,
        *,
        max_index_size: int,
        file_suffix: str = "",
        file_already_exists: bool = False,
        init_file_size: int = 0,
        preallocate: bool = False,
        has_txn_index: bool | None = None,
    ) -> None:
        """
        Args:
            has_txn_index: whether it has aborted transactions, if that is known.
        """
        self._files = files
        self.base_offset = base_offset
        self.log = FileRecords.open(
            files,
            log_files.log_file(directory, base_offset, file_suffix),
            file_already_exists=file_already_exists,
            init_file_size=init_file_size,
            preallocate=preallocate,
        )
        name = log_files.offset_index_name(base_offset, file_suffix)
        self._lazy_offset_index = LazyIndex(
            OffsetIndex, files, directory, name, base_offset, max_size=max_index_size
        )
        name = log_files.time_index_name(base_offset, file_suffix)
        self._lazy_time_index = LazyIndex(
            TimeIndex, files, directory, name, base_offset, max_size=max_index_size
        )
        name = log_files.transaction_index_name(base_offset, file_suffix)
        self.txn_index = TransactionIndex(files, directory, name, base_offset, exists=has_txn_index)

    @property
    def size(self) -> int:
        """
        Bytes of the batches.
        """
        return self.log.size

    @property
    def offset_index(self) -> OffsetIndex:
        return self._lazy_offset_index.index or self._lazy_offset_index.get()

    @property
    def time_index(self) -> TimeIndex:
        return self._lazy_time_index.index or self._lazy_time_index.get()

    @property
    def offset_index_file(self) -> Path:
        return self._lazy_offset_index.path

    @property
    def time_index_file(self) -> Path:
        return self._lazy_time_index.path

    @property
    def _parts(
        self,
    ) -> tuple[FileRecords, LazyIndex[OffsetIndex], LazyIndex[TimeIndex], TransactionIndex]:
        return self.log, self._lazy_offset_index, self._lazy_time_index, self.txn_index

    def last_modified(self) -> int:
        """
        When the batches were last written to, in ms; 0 if the file is gone.
        """
        try:
            return self._files.modified_ms(self.log.path)
        except FileNotFoundError:
            return 0

    def set_last_modified(self, ms: int) -> None:
        """
        Raises:
            FileNotFoundError: one of the files is missing.
        """
        for path in (self.log.path, self.offset_index_file, self.time_index_file):
            self._files.set_modified_ms(path, ms)

    def resize_indexes(self, size: int) -> None:
        """
        Make room in both indexes, *size* bytes in each.
        """
        self._lazy_offset_index.resize(size)
        self._lazy_time_index.resize(size)

    def make_index_files(self) -> None:
        """
        Make the files of both indexes of a new segment.
        """
        self._lazy_offset_index.make_file()
        self._lazy_time_index.make_file()

    def begin_indexes_anew(self) -> None:
        """
        Let both indexes be without entries, and in memory until ``store_indexes``.
        """
        self._lazy_offset_index.begin_anew()
        self._lazy_time_index.begin_anew()

    def store_indexes(self) -> None:
        """
        Put both indexes that were made anew into their files.
        """
        self._lazy_offset_index.store()
        self._lazy_time_index.store()

    def trim_indexes(self) -> None:
        """
        Cut off the holes of both indexes, whose files are there from now on.
        """
        self._lazy_offset_index.trim()
        self._lazy_time_index.trim()

    def release_indexes(self, *, unsynced: bool) -> None:
        """
        Give the files of both indexes back until somebody asks for them again.

        Args:
            unsynced: whether there may be entries that only ``flush`` brings to the disk.
        """
        self._lazy_offset_index.release(unsynced=unsynced)
        self._lazy_time_index.release(unsynced=unsynced)

    @property
    def has_open_index(self) -> bool:
        """
        Whether somebody has asked for an index. If not, nothing was appended.
        """
        return self._lazy_offset_index.index is not None or self._lazy_time_index.index is not None

    def flush(self) -> None:
        """
        Return once everything survives a crash of the machine. Safe from any thread.
        """
        self.log.flush()
        self._lazy_offset_index.flush()
        self._lazy_time_index.flush()
        self.txn_index.flush()

    def update_parent_dir(self, directory: Path) -> None:
        """
        Somebody has renamed the directory of the log.
        """
        for part in self._parts:
            part.update_parent_dir(directory)

    def change_file_suffixes(self, old_suffix: str, new_suffix: str) -> None:
        """
        Rename the files so that their names end in *new_suffix* in the place of *old_suffix*.
        """
        for part in self._parts:
            part.rename_to(log_files.replace_suffix(part.path, old_suffix, new_suffix))

    def has_suffix(self, suffix: str) -> bool:
        return all(part.path.name.endswith(suffix) for part in self._parts)

    def delete_if_exists(self) -> None:
        """
        Remove the files. Who reads them goes on doing so.

        Raises:
            KafkaStorageError: a file could not be removed; all others were tried.
        """
        run_all(part.delete_if_exists for part in self._parts)
        logger.info("Deleted log segment %s", self.log.path)

    @property
    def deleted(self) -> bool:
        return not any(self._files.exists(part.path) for part in self._parts)

    def close(self) -> None:
        """
        Cut off all holes, make the batches durable, and give the files back.

        Raises:
            KafkaStorageError: a file could not be closed properly; all others were tried.
        """
        run_all(
            part.close
            for part in (self._lazy_offset_index, self._lazy_time_index, self.log, self.txn_index)
        )

    def close_handlers(self) -> None:
        """
        Give the files back as they are, for when the disk has failed.
        """
        self._lazy_offset_index.close_handler()
        self._lazy_time_index.close_handler()
        self.log.close_handlers()
        self.txn_index.close()
