"""
The line of each record, for batches without a decoder that is not plain text.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.storage.dump.java_text import utf8_text
from barnabas.storage.dump.record_reader import RecordReader

if TYPE_CHECKING:
    from mypy_extensions import i64

MOST_LINES: Final = 4096
MOST_BYTES: Final = 1024 * 1024
"""Lines are handed on when there are so many, or this much in them."""

Contents = Callable[[RecordReader], str]
"""
Gives what a line has behind the metadata of the record, beginning with a blank unless it is empty.
"""


class OffsetGaps:
    """
    The offsets of one file that do not follow the one before them, which compaction leaves behind.

    The first record is expected to have offset 0, as in Kafka's tool.
    """

    def __init__(self) -> None:
        self.pairs: dict[int, int] = {}
        """The offset after each gap, by the one before it."""
        self._last: int = -1

    def see(self, offset: int) -> None:
        if offset != self._last + 1:
            self.pairs[self._last] = offset
        self._last = offset


def plain_contents(reader: RecordReader) -> str:
    """
    Key and value as text, as Kafka's StringDecoder reads them.
    """
    key = reader.key()
    value = reader.value()
    text = "" if key is None else f" key: {utf8_text(key)}"
    return text if value is None else f"{text} payload: {utf8_text(value)}"


def append_lines(
    reader: RecordReader,
    lines: list[str],
    gaps: OffsetGaps,
    timestamp_name: str,
    *,
    metadata: bool,
    contents: Contents | None,
) -> bool:
    """
    Append the lines of the next records; False if there are no more.

    Args:
        timestamp_name: as in ``CreateTime: 1700000000000``.
        metadata: whether a line tells offset, timestamp, sizes, sequence and headers.
        contents: gives the rest of a line; None for lines that end behind the metadata.

    Raises:
        DumpFailure: a record is none, or *contents* cannot be had; *lines* end there.
    """
    plain: bool = contents is plain_contents
    size: i64 = 0
    count: i64 = 0
    while count < MOST_LINES and size < MOST_BYTES:
        if not reader.advance():
            return False
        count += 1
        gaps.see(reader.offset)
        line = metadata_text(reader, timestamp_name) if metadata else ""
        if plain:
            line += plain_contents(reader)
        elif contents is not None:
            lines.append(line)
            size += len(line)
            line = contents(reader)
        if not metadata and line:
            line = "|" + line
        lines.append(line + "\n")
        size += len(line)
    return True


def metadata_text(reader: RecordReader, timestamp_name: str) -> str:
    names = "" if reader.header_count == 0 else header_names(reader)
    return (
        f"| offset: {reader.offset} {timestamp_name}: {reader.timestamp}"
        f" keySize: {reader.key_size} valueSize: {reader.value_size}"
        f" sequence: {reader.sequence} headerKeys: [{names}]"
    )


def header_names(reader: RecordReader) -> str:
    return ",".join([utf8_text(name) for name, _ in reader.headers()])
