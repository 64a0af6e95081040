"""
The tagged fields of flexible versions (KIP-482)::

    count   uvarint
    each    tag uvarint, size uvarint, value     tags grow
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from barnabas.protocol.codec.members import Member, Single
from barnabas.protocol.codec.primitives import (
    MAX_TAGGED_FIELDS,
    UVARINTS,
    Buffer,
    bad_tag_count,
    uvarint,
)
from barnabas.protocol.codec.wire_types import Reader, Writer
from barnabas.protocol.errors import DecodeError

_NO_TAGS: Final = b"\0"


class TaggedFields(Member):
    """
    The section of tagged fields (KIP-482). It has those that differ from their defaults.
    """

    def __init__(self, name: str, known: dict[int, Single]) -> None:
        self._name = name
        self._known = known
        self._tags = sorted(known)
        self.has_arrays = any(single.has_arrays for single in known.values())

    def read(self, reader: Reader, message: Any) -> None:
        for _ in range(self._count(reader)):
            tag, stop = reader.uvarint(), reader.uvarint() + reader.position
            if tag in self._known:
                self._known[tag].read(reader, message)
            self._end(reader, tag, stop)

    def read_in_steps(self, reader: Reader, message: Any) -> Generator[None, None, None]:
        for _ in range(self._count(reader)):
            tag, stop = reader.uvarint(), reader.uvarint() + reader.position
            if tag in self._known:
                yield from self._known[tag].read_in_steps(reader, message)
            self._end(reader, tag, stop)

    def _count(self, reader: Reader) -> int:
        count = reader.uvarint()
        if count > MAX_TAGGED_FIELDS:
            bad_tag_count(self._name, count)
        return count

    def _end(self, reader: Reader, tag: int, stop: int) -> None:
        """
        Continue behind a tagged field. An unknown one is skipped.
        """
        if tag not in self._known:
            reader.position = stop
        if stop > reader.end:
            raise DecodeError(f"{self._name}: tagged field {tag} ends after the data")
        if reader.position != stop:
            over = reader.position - stop
            raise DecodeError(
                f"{self._name}: tagged field {tag} is {over} bytes longer than it says"
            )

    def write(self, writer: Writer, message: Any) -> None:
        if not self._tags:
            writer.out.append(_NO_TAGS)
            return
        out: list[Buffer] = []
        count = 0
        for tag in self._tags:
            single = self._known[tag]
            value = getattr(message, single.name)
            # Most are the default itself, and to compare structs takes time.
            if value is single.default or value == single.default:
                continue
            body = Writer(writer.left)
            body.left_bytes = writer.left_bytes
            single.type.write(body, value)
            writer.left, writer.left_bytes = body.left, body.left_bytes
            data = b"".join(body.finished())
            out += (uvarint(tag), uvarint(len(data)), data)
            count += 1
        writer.out.append(UVARINTS[count])
        writer.out += out
