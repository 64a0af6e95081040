"""
Files that a crash has left in the directory of a log.

::

    *.deleted    removed: their deletion had begun
    *.cleaned    removed: they were still being written
    *.swap       removed, if a .cleaned of the same or a lower offset exists: both are part of one
                 replacement, which was not complete. Else they replace the segments that they cover
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from barnabas.storage.log.directory import SegmentDirectory
from barnabas.storage.segment.records import FileRecords
from barnabas.storage.state_files.file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    offset_from_file_name,
)

logger = logging.getLogger(__name__)

SNAPSHOT_DELETE_SUFFIX = ".checkpoint.deleted"
"""Snapshots of the cluster's metadata belong to the metadata log."""


def numbered(names: Iterable[str]) -> list[str]:
    """
    The names that begin with an offset; other files do not belong to segments.
    """
    return [name for name in names if name.partition(".")[0].isdecimal()]


def clean_up(directory: SegmentDirectory) -> list[str]:
    """
    Remove the files of unfinished work, and complete a replacement that was nearly finished.

    Returns:
        The names of all files after that; mostly the directory is listed only once.

    Raises:
        FileNotFoundError: there is no directory.
        KafkaStorageError: the disk failed.
    """
    names = directory.files.names(directory.path)
    deleted = [
        name
        for name in names
        if name.endswith(DELETED_SUFFIX) and not name.endswith(SNAPSHOT_DELETE_SUFFIX)
    ]
    temporary = numbered(name for name in names if name.endswith((CLEANED_SUFFIX, SWAP_SUFFIX)))
    if not deleted and not temporary:
        return names
    for name in deleted:
        _remove(directory, name)
    swapped = _remove_temporary_files(directory, temporary)
    if swapped:
        _complete_swap(directory, swapped)
    return directory.files.names(directory.path)


def _remove_temporary_files(directory: SegmentDirectory, temporary: list[str]) -> list[str]:
    """
    Remove the files that cannot be used; return the usable ones, which are ``.swap`` files.
    """
    cleaned = [name for name in temporary if name.endswith(CLEANED_SUFFIX)]
    swapped = [name for name in temporary if name.endswith(SWAP_SUFFIX)]
    if not cleaned:
        return swapped
    first = min(map(offset_from_file_name, cleaned))
    invalid = [name for name in swapped if offset_from_file_name(name) >= first]
    # The .cleaned are removed last: while they exist the .swap must not be used.
    for name in [*invalid, *cleaned]:
        _remove(directory, name)
    return [name for name in swapped if name not in invalid]


def _remove(directory: SegmentDirectory, name: str) -> None:
    logger.info("Deleting %s, which is left over", directory.path / name)
    directory.files.remove(directory.path / name)


def _complete_swap(directory: SegmentDirectory, swapped: list[str]) -> None:
    files, path = directory.files, directory.path
    ranges = [
        _range_of(directory, name) for name in swapped if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)
    ]
    start = min((first for first, _ in ranges), default=0)
    end = max((next_offset for _, next_offset in ranges), default=0)
    for name in numbered(files.names(path)):
        if not name.endswith(SWAP_SUFFIX) and start <= offset_from_file_name(name) < end:
            _remove(directory, name)
    for name in swapped:
        plain = name.removesuffix(SWAP_SUFFIX)
        logger.info("Recovering file %s by renaming", path / name)
        files.rename(path / name, path / plain)


def _range_of(directory: SegmentDirectory, name: str) -> tuple[int, int]:
    """
    The offsets that a ``.swap`` segment covers, the end exclusive.
    """
    base_offset = next_offset = offset_from_file_name(name)
    # Not through its index, which opening would create if it is missing.
    records = FileRecords.open(directory.files, directory.path / name, mutable=False)
    try:
        for header in records.headers():
            next_offset = header.last_offset + 1
    finally:
        records.close_handlers()
    return base_offset, next_offset
