"""
The files that have the offsets of a range now.

What a broker does to the files after a plan was made must not change the rows. A segment that it
deletes keeps another name for a minute; one that it compacts has its offsets in other bytes, of
this file or of the one before. So offsets decide what is read, and positions are only where to look
first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from socket import gethostname
from typing import Final, NamedTuple

from barnabas.pipeline.errors import MissingDirectory
from barnabas.pipeline.logs.filesystems import Location, locate
from barnabas.pipeline.logs.indexes import base_offset_in, position_of
from barnabas.pipeline.options import ReadOptions
from barnabas.pipeline.reading.plan import END, SegmentRange, report_loss
from barnabas.pipeline.storage import StorageOptions
from barnabas.storage.fs.interface import File, Files
from barnabas.storage.readonly.files import opened
from barnabas.storage.readonly.partition import PartitionDirectory
from barnabas.storage.readonly.segment import ReadOnlySegment
from barnabas.storage.state_files.file_names import DELETED_SUFFIX, log_file

_TRIES: Final = 5
"""A broker does not compact the same partition again and again within an instant."""


class OpenedRange(NamedTuple):
    """
    An open file, and where in it the offsets are.
    """

    path: Path
    file: File
    position: int
    end_position: int


@lru_cache(maxsize=8)
def _located(url: str, storage: StorageOptions | None) -> Location:
    # A worker that is used again need not connect again.
    return locate(url, storage)


def files_of(url: str, storage: StorageOptions | None) -> Files:
    """
    The file system of a path.
    """
    return _located(url, storage).files


def check_directory(piece: SegmentRange, options: ReadOptions) -> None:
    """
    Return if this machine has the directory in which a file of *piece* was not found.

    Raises:
        MissingDirectory: it is not there, or empty, as a directory is on which nothing is mounted.
    """
    files, path = _located(piece.url, options.storage)
    try:
        names = files.names(path)
    except FileNotFoundError:
        names = []
    if not names:
        raise MissingDirectory(
            f"There is no directory {piece.url} on {gethostname()}, or it is empty: every worker"
            " of Spark needs the log directories that its driver has, under the same path."
        )


@lru_cache(maxsize=1024)
def _directory(path: str) -> Path:
    # Small segments follow one another, and to take a path apart takes as long as to open a file.
    return Path(path)


@contextmanager
def open_sources(piece: SegmentRange, options: ReadOptions) -> Iterator[list[OpenedRange]]:
    """
    The files with the offsets of *piece*, in their order: nearly always the one that was planned.

    Raises:
        DataLoss: some of the offsets were deleted, and the options do not say to go on.
        MissingDirectory: as ``check_directory``.
    """
    files = files_of(piece.url, options.storage)
    with ExitStack() as stack:
        source = _as_planned(files, piece, stack)
        yield [source] if source else _looked_for(files, piece, options, stack)


def _as_planned(files: Files, piece: SegmentRange, stack: ExitStack) -> OpenedRange | None:
    for suffix in ("", DELETED_SUFFIX):
        path = log_file(_directory(piece.directory), piece.base_offset, suffix)
        try:
            file = stack.enter_context(opened(files, path))
        except FileNotFoundError:
            continue
        size = file.size()
        is_same = size == piece.file_size or (piece.is_active and size > piece.file_size)
        if is_same and piece.first_offset in (None, base_offset_in(file, piece.position)):
            return OpenedRange(path, file, piece.position, piece.end_position)
    return None


def _looked_for(
    files: Files, piece: SegmentRange, options: ReadOptions, stack: ExitStack
) -> list[OpenedRange]:
    check_directory(piece, options)
    for _ in range(_TRIES):
        with ExitStack() as attempt:
            try:
                segments = _segments(files, piece)
                sources = [_source(files, segment, piece, attempt) for segment in segments]
            except FileNotFoundError:
                continue
            first = segments[0].base_offset if segments else END
            if first > piece.offsets.start:
                path = log_file(_directory(piece.directory), piece.base_offset)
                last = min(first, piece.offsets.end) - 1
                report_loss(
                    f"{path} is gone, and with it offsets {piece.offsets.start} to {last} of "
                    f"{piece.topic_partition}.",
                    options,
                )
            stack.push(attempt.pop_all())
            return sources
    raise FileNotFoundError(f"The segments of {piece.directory} change too fast to be read.")


def _segments(files: Files, piece: SegmentRange) -> list[ReadOnlySegment]:
    """
    The segments that may have the offsets now.
    """
    try:
        there = PartitionDirectory(_directory(piece.directory), files).segments
    except FileNotFoundError:
        return []
    bases = [*(segment.base_offset for segment in there), END]
    return [
        segment
        for segment, (base, next_base) in zip(there, pairwise(bases), strict=True)
        if base < piece.offsets.end and piece.offsets.start < next_base
    ]


def _source(
    files: Files, segment: ReadOnlySegment, piece: SegmentRange, stack: ExitStack
) -> OpenedRange:
    position = position_of(files, segment, piece.offsets.start)
    file = stack.enter_context(opened(files, segment.path))
    return OpenedRange(segment.path, file, position, file.size())
