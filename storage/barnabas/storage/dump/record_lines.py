"""
The lines of records, the part of a dump that takes the longest.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.protocol.records.record import RecordReader
from barnabas.storage.dump.java_text import utf8_text

if TYPE_CHECKING:
    from mypy_extensions import i64

MOST_LINES: Final = 4096
MOST_BYTES: Final = 1024 * 1024
"""Lines are handed on when their number or their size reaches one of these."""

Contents = Callable[[RecordReader], str]
"""
Returns the end of a line, behind the metadata of the record: empty, or beginning with a blank.
"""


class OffsetGaps:
    """
    The gaps between the offsets of one file, which compaction leaves behind.

    As in Kafka's tool, there is a gap in front of a first record whose offset is not 0.
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
    Key and value as text (Kafka's StringDecoder).
    """
    key, value = reader.contents()
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
    Append the lines of the next records; return False behind the last record.

    Args:
        timestamp_name: as in ``CreateTime: 1700000000000``.
        metadata: whether a line has offset, timestamp, sizes, sequence and names of headers.
        contents: returns the rest of a line; None for lines that end behind the metadata.

    Raises:
        DumpFailure, KafkaError: a record is broken, or *contents* fails; *lines* end there.
    """
    plain: bool = contents is plain_contents
    size: i64 = 0
    count: i64 = 0
    while count < MOST_LINES and size < MOST_BYTES:
        if not reader.advance():
            return False
        count += 1
        offset, timestamp, key_size, value_size, sequence, headers = reader.numbers()
        gaps.see(offset)
        line = ""
        if metadata:
            names = "" if headers == 0 else header_names(reader)
            line = (
                f"| offset: {offset} {timestamp_name}: {timestamp}"
                f" keySize: {key_size} valueSize: {value_size}"
                f" sequence: {sequence} headerKeys: [{names}]"
            )
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


def header_names(reader: RecordReader) -> str:
    return ",".join([utf8_text(name) for name, _ in reader.headers()])
