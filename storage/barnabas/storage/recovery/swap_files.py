"""
Files that a crash left behind in the directory of a log, and what becomes of them.

::

    *.deleted    removed: they were on their way out
    *.cleaned    removed: somebody was still writing them
    *.swap       removed, if a .cleaned of the same or a lower offset is left: they are part of the
                 same replacement, which was not complete. Else they take the place of the segments
                 that they cover, as was about to happen
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
"""Snapshots of the cluster's metadata have an owner of their own."""


def numbered_files(directory: SegmentDirectory) -> list[str]:
    """
    The names of files that belong to an offset, in order. Other files are none of our business.
    """
    return _numbered(directory.files.names(directory.path))


def _numbered(names: Iterable[str]) -> list[str]:
    return [name for name in names if name.partition(".")[0].isdecimal()]


def clean_up(directory: SegmentDirectory) -> list[str]:
    """
    Remove what is left of work that was not complete, and complete what was nearly.

    Returns:
        What ``numbered_files`` would say now. Mostly nothing was to be done, and a broker that
        opens thousands of logs need not look twice.

    Raises:
        KafkaStorageError: the disk failed.
    """
    listed = directory.listed
    names: Iterable[str] = directory.files.names(directory.path) if listed is None else listed
    numbered = _numbered(names)
    deleted = [
        name
        for name in names
        if name.endswith(DELETED_SUFFIX) and not name.endswith(SNAPSHOT_DELETE_SUFFIX)
    ]
    temporary = [name for name in numbered if name.endswith((CLEANED_SUFFIX, SWAP_SUFFIX))]
    if not deleted and not temporary:
        return numbered
    directory.listed = None
    for name in deleted:
        _remove(directory, name)
    swapped = _remove_temporary_files(directory, temporary)
    if swapped:
        _complete_swap(directory, swapped)
    return numbered_files(directory)


def _remove_temporary_files(directory: SegmentDirectory, temporary: list[str]) -> list[str]:
    """
    Remove what cannot be used; return the ``.swap`` files, which can.
    """
    cleaned = [name for name in temporary if name.endswith(CLEANED_SUFFIX)]
    swapped = [name for name in temporary if name.endswith(SWAP_SUFFIX)]
    if not cleaned:
        return swapped
    first = min(map(offset_from_file_name, cleaned))
    invalid = [name for name in swapped if offset_from_file_name(name) >= first]
    # The .cleaned go last: until then they say that the .swap must not be used.
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
    for name in numbered_files(directory):
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
    # Not through its index, which opening would make if it is missing.
    records = FileRecords.open(directory.files, directory.path / name, mutable=False)
    try:
        for header in records.headers():
            next_offset = header.last_offset + 1
    finally:
        records.close_handlers()
    return base_offset, next_offset
