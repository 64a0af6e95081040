"""
The types of the wire that ``struct`` does not know, and the errors of lengths and counts.

=====================  =========================  ==========================
type                   classic                    compact (KIP-482)
=====================  =========================  ==========================
string                 int16 length, UTF-8        uvarint length + 1, UTF-8
bytes, records         int32 length, bytes        uvarint length + 1, bytes
array                  int32 count, elements      uvarint count + 1, elements
null of all of these   length -1                  0
=====================  =========================  ==========================

A uvarint has seven bits a byte, the lowest first; the top bit says that more follow. A section of
tagged fields is a uvarint count, then for each of them, in ascending order, a uvarint tag, a
uvarint size, and that many bytes.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import Final, NoReturn

from barnabas.protocol.errors import DecodeError, TooManyEntries

Buffer = bytes | bytearray | memoryview

INT32_MIN: Final = -(2**31)
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1

MAX_STRING_BYTES: Final = 2**15 - 1
"""
The longest string, in bytes of UTF-8; Kafka keeps to the limit of the classic form everywhere.
"""

UVARINTS: Final = tuple(bytes([value]) for value in range(128))
"""
The uvarints of one byte, by value.
"""

ENTRIES_AT_ONCE: Final = 2000
"""
How many entries the arrays of a message may have, all together, for it to be read and written at
once. More take so long that others have to come between.
"""

BYTES_AT_ONCE: Final = 1024 * 1024
"""
The bytes of long strings and bytes in such a message, all together. Copying a string into up to
four bytes for each character takes 1 to 2 ms for each MiB, and more where memory is new.
"""

LONG_BYTES: Final = 512
"""
The size from which a value counts in ``BYTES_AT_ONCE``. Fields of records never count: nothing
copies them.
"""

MAX_TAGGED_FIELDS: Final = 1000
"""
How many tagged fields one struct may have. Apache Kafka has no limit; no struct of its own has more
than a dozen.
"""

_MAX_UVARINT_BYTES = 5


class LeftToGeneralCodec(Exception):
    """
    A hot codec leaves the message to the general one: it is malformed, or has too many entries.
    """


def uvarint(value: int) -> bytes:
    """
    *value* as a uvarint.

    Raises:
        ValueError: it needs more than 32 bits, or is negative.
    """
    if 0 <= value < 128:
        return UVARINTS[value]
    if not 0 <= value < 1 << 32:
        raise ValueError(f"{value} does not fit into an unsigned varint")
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def compact_length(length: int) -> bytes:
    """
    The prefix of a compact array or of compact bytes of *length*, -1 for null.

    Raises:
        ValueError: there is no such length.
    """
    return uvarint(length + 1)


def utf8_size(text: str) -> int:
    """
    The bytes of *text* in a message.
    """
    return len(text) if text.isascii() else len(text.encode())


def string_length(size: int) -> bytes:
    """
    The length before a compact string of *size* bytes.

    Raises:
        ValueError: the string is too long.
    """
    if size > MAX_STRING_BYTES:
        raise ValueError(f"a string of {size} bytes is too long, {MAX_STRING_BYTES} are the limit")
    return uvarint(size + 1)


def read_uvarint(data: Buffer, position: int) -> tuple[int, int]:
    """
    The uvarint at *position*, and the position after it.

    Bits beyond the 32nd are dropped, as in Kafka's ``ByteUtils.readUnsignedVarint``.

    Raises:
        DecodeError: it has more than five bytes.
        IndexError: the data ends inside of it.
    """
    value: int = data[position]
    position += 1
    if value < 128:
        return value, position
    value &= 127
    for shift in range(7, 7 * _MAX_UVARINT_BYTES, 7):
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFF, position
    raise DecodeError(f"the varint before byte {position} does not end")


def read_compact_length(data: Buffer, position: int) -> tuple[int, int]:
    """
    The length of the compact array, string or bytes at *position*, -1 for null, and the position
    after it.

    Raises:
        DecodeError: it has more than five bytes.
        IndexError: the data ends inside of it.
    """
    value, position = read_uvarint(data, position)
    return value - 1, position


def skip_tagged_fields(data: Buffer, position: int) -> int:
    """
    The position after the section of tagged fields at *position*.

    Raises:
        DecodeError: a field ends after the data, or there are too many.
        IndexError: the data ends inside of the section.
    """
    count, position = read_uvarint(data, position)
    if count > MAX_TAGGED_FIELDS:
        bad_tag_count("a struct", count)
    for _ in range(count):
        tag, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        position += size
        if position > len(data):
            raise DecodeError(f"tagged field {tag} ends after the data")
    return position


def bad_length(name: str, length: int, left: int) -> NoReturn:
    """
    Complain about the *length* of the field *name*, in bytes, with *left* bytes to go.

    Raises:
        DecodeError: always.
    """
    if length < 0:
        raise DecodeError(f"{name} may not be null")
    if length > left:
        raise DecodeError(f"{name} has {length} bytes, of which {left} are there")
    raise DecodeError(f"{name} has {length} bytes, too many for a string")


def bad_count(name: str, count: int, left: int) -> NoReturn:
    """
    Complain about the number of elements of the array *name*, with *left* bytes to go.

    Raises:
        DecodeError: always.
    """
    if count < 0:
        raise DecodeError(f"{name} may not be null")
    raise DecodeError(f"{name} has {count} elements, which do not fit into {left} bytes")


def too_many_entries(name: str) -> NoReturn:
    """
    Complain that the message has too many entries or too long values, those of *name* counted.

    Raises:
        TooManyEntries: always.
    """
    raise TooManyEntries(f"too many entries, or too long ones, at {name}")


def bad_tag_count(name: str, count: int) -> NoReturn:
    """
    Complain about the number of tagged fields of the struct *name*.

    Raises:
        DecodeError: always.
    """
    raise DecodeError(f"{name} has {count} tagged fields, {MAX_TAGGED_FIELDS} are the limit")
