"""
The facts about a log that are known before its files are read.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from barnabas.protocol.structs import struct
from barnabas.storage.state_files.file_names import (
    CLEANED_SUFFIX,
    DELETE_DIR_SUFFIX,
    DELETED_SUFFIX,
)
from barnabas.storage.verify import invariants
from barnabas.storage.verify.report import FileReport


class DirectoryState(StrEnum):
    """
    The state of a log directory: whether a broker runs on it, or how the last one was stopped.
    """

    CLEAN = "stopped cleanly"
    CRASHED = "not stopped cleanly"
    IN_USE = "in use"
    """A broker has the lock: it appends to logs, and creates and deletes files."""
    UNKNOWN = "unknown"
    """It is not a log directory, for example a copy of single logs."""


@struct(kw_only=True)
class LogContext:
    """
    The facts about a log that are beside its own directory; None for those that are missing.
    """

    state: DirectoryState = DirectoryState.UNKNOWN
    recovery_point: int | None = None
    log_start_offset: int | None = None
    high_watermark: int | None = None
    cleaner_offset: int | None = None
    may_be_compacted: bool = True
    """Whether offsets may be missing between batches."""
    preallocate: bool | None = None

    @property
    def live(self) -> bool:
        return self.state is DirectoryState.IN_USE


def _is_legal(name: str, state: DirectoryState) -> bool:
    """
    Whether an unfinished or deleted file may exist. A clean stop waits for renames, but neither for
    deletions nor for the cleaner.
    """
    if state is DirectoryState.CLEAN:
        return name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, DELETE_DIR_SUFFIX))
    return state is DirectoryState.IN_USE


def check_leftovers(names: Iterable[str], state: DirectoryState, report: FileReport) -> None:
    """
    Report unfinished and deleted files that should not be there: the first one by its name.
    """
    leftovers = [name for name in names if not _is_legal(name, state)]
    if leftovers:
        more = f" and {len(leftovers) - 1} more" if len(leftovers) > 1 else ""
        report.add(invariants.LEFTOVER, f"{leftovers[0]}{more}", "none")
