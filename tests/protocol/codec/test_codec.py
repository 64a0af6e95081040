from __future__ import annotations

from itertools import product
from typing import Any, ClassVar
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.codec.codec import decode, decode_from, encode, encode_parts
from barnabas.protocol.codec.schema import (
    ZERO_UUID,
    Api,
    Message,
    Records,
    float64,
    int8,
    int16,
    int32,
    int64,
    message,
    replace,
    since,
    uint16,
    uint32,
)
from barnabas.protocol.errors import DecodeError
from tests.support.bombs import memory_below

CLASSIC, COMPACT = 0, 1
SEAL = UUID("00112233-4455-6677-8899-aabbccddeeff")


@message
class Room:
    number: int16
    guest: str | None = None


@message(frozen=False)
class Floor:
    level: int8
    rooms: list[Room]


@message(frozen=False)
class Castle:
    """
    Has every type, classic in version 0 and compact in version 1.
    """

    api: ClassVar[Api] = Api(1, versions=range(2), flexible=1)

    a: int8
    b: int16
    c: uint16
    d: int32
    e: uint32
    f: int64
    g: float64
    h: bool
    seal: UUID
    name: str
    motto: str | None
    crest: bytes
    key: bytes | None
    archive: Records | None
    years: list[int32]
    wells: list[int8] | None
    gates: list[str]
    deeds: list[UUID]
    floors: list[Floor]
    cellar: Room | None


@message
class Tower:
    api: ClassVar[Api] = Api(2, versions=range(2), flexible=1)

    watch: str = since(0, default="", compact=False)
    name: str | None = since(1, default=None, tag=1)
    height: int32 = since(1, default=-1, tag=0)
    bells: list[int16] = since(1, default=[], tag=2)
    top: Room = since(1, default=Room(number=0), tag=3)
    key: UUID = since(1, default=ZERO_UUID, tag=4)
    vault: Room | None = since(1, default=Room(number=7), tag=200)


@message(frozen=False)
class Moat:
    api: ClassVar[Api] = Api(3, versions=range(1, 4))

    old: int16 = since(0, until=1, default=-1)
    depth: int16
    fish: list[str] | None = since(2, default=[], nullable=3)
    bridge: str | None = since(1, nullable=2)


@message
class Void:
    """
    Has nothing.
    """


@message
class Hall:
    """
    Has elements that take no bytes.
    """

    api: ClassVar[Api] = Api(4, versions=range(1))

    voids: list[Void]


@message
class Odd:
    """
    Lacks a default where it needs one.
    """

    api: ClassVar[Api] = Api(5, versions=range(2))

    what: int16 = since(1)


CASTLE = Castle(
    a=-1,
    b=-2,
    c=65535,
    d=-3,
    e=2**32 - 1,
    f=-4,
    g=0.5,
    h=True,
    seal=SEAL,
    name="West",
    motto=None,
    crest=b"\1\2",
    key=None,
    archive=b"\xaa\xbb\xcc",
    years=[1, -1],
    wells=None,
    gates=["N", ""],
    deeds=[ZERO_UUID],
    floors=[
        Floor(level=0, rooms=[Room(number=1), Room(number=2, guest="K")]),
        Floor(level=1, rooms=[]),
    ],
    cellar=Room(number=9, guest="B"),
)
FIXED = f"ff fffe ffff fffffffd ffffffff fffffffffffffffc 3fe0000000000000 01 {SEAL.hex}"
CASTLE_BYTES = {
    CLASSIC: f"{FIXED} 0004 57657374 ffff 00000002 0102 ffffffff 00000003 aabbcc"
    "00000002 00000001 ffffffff  ffffffff  00000002 0001 4e 0000"
    "00000001 00000000000000000000000000000000"
    "00000002  00 00000002 0001 ffff 0002 0001 4b  01 00000000"
    "01 0009 0001 42",
    COMPACT: f"{FIXED} 05 57657374 00 03 0102 00 04 aabbcc"
    "03 00000001 ffffffff  00  03 02 4e 01"
    "02 00000000000000000000000000000000"
    "03  00 03 0001 00 00 0002 02 4b 00 00  01 01 00"
    "01 0009 02 42 00  00",
}


@pytest.mark.parametrize("version", [CLASSIC, COMPACT])
def test_every_field_type_is_encoded_in_its_classic_and_compact_form(version: int) -> None:
    """
    The expected bytes were assembled by hand.
    """
    data = bytes.fromhex(CASTLE_BYTES[version])

    assert data.hex(" ") == encode(CASTLE, version).hex(" ")
    assert CASTLE == decode(Castle, version, data)
    for size in range(len(data)):
        with pytest.raises(DecodeError, match=f"Castle version {version}: "):
            decode(Castle, version, data[:size])


@pytest.mark.parametrize("version", [CLASSIC, COMPACT])
def test_null_struct_is_encoded_as_a_marker_byte(version: int) -> None:
    castle = replace(CASTLE, cellar=None)
    data = encode(castle, version)

    assert b"\xff" == (data[-1:] if version == CLASSIC else data[-2:-1])
    assert decode(Castle, version, data).cellar is None


def test_decoded_bytes_are_copied() -> None:
    """
    So that a group's metadata does not keep the receive buffer alive.
    """
    castle = decode(Castle, COMPACT, memoryview(encode(CASTLE, COMPACT)))

    assert isinstance(castle.crest, bytes)


def test_decoded_records_are_slices_of_the_receive_buffer() -> None:
    buffer = bytearray(encode(CASTLE, CLASSIC))

    archive = decode(Castle, CLASSIC, memoryview(buffer)).archive

    assert isinstance(archive, memoryview)
    archive[0] = 7
    assert b"\7\xbb\xcc" in buffer


def test_encoded_records_are_not_copied() -> None:
    records = memoryview(bytearray(b"records"))
    castle = replace(CASTLE, archive=records)

    parts = encode_parts(castle, COMPACT)

    assert any(part is records for part in parts)
    assert 3 == len(parts)
    assert encode(castle, COMPACT) == b"".join(parts)


def test_bytes_after_a_message_are_ignored() -> None:
    """
    As in Kafka. The decoder can report where the message ends.
    """
    data = b"before" + encode(CASTLE, COMPACT)

    assert (CASTLE, len(data)) == decode_from(Castle, COMPACT, data + b"after", 6)
    assert CASTLE == decode(Castle, COMPACT, data[6:] + b"after")


@pytest.mark.parametrize(
    ("tower", "tags"),
    [
        (Tower(), "00"),
        (Tower(height=5), "01  00 04 00000005"),
        (Tower(name=""), "01  01 01 01"),
        (Tower(bells=[3]), "01  02 03 02 0003"),
        (Tower(top=Room(number=0)), "00"),
        (Tower(top=Room(number=1)), "01  03 04 0001 00 00"),
        (Tower(key=UUID(int=0)), "00"),
        (Tower(key=SEAL), f"01  04 10 {SEAL.hex}"),
        (Tower(vault=Room(number=8)), "01  c801 05 01 0008 00 00"),
        (Tower(vault=None), "01  c801 01 00"),
        (Tower(height=1, name="x"), "02  00 04 00000001  01 02 02 78"),
    ],
)
def test_tagged_fields_are_encoded_unless_they_have_their_default(tower: Tower, tags: str) -> None:
    data = bytes.fromhex("0000" + tags)

    assert data.hex(" ") == encode(tower, COMPACT).hex(" ")
    assert tower == decode(Tower, COMPACT, data)
    for size in range(len(data)):
        with pytest.raises(DecodeError):
            decode(Tower, COMPACT, data[:size])


def test_unknown_tagged_fields_are_skipped() -> None:
    """
    A later version of Kafka may send any number of them, between known ones.
    """
    data = bytes.fromhex("0000 03  00 04 00000005  05 03 aabbcc  8101 00")
    many = bytes.fromhex("0000 8101") + b"\x09\x01x" * 129

    assert Tower(height=5) == decode(Tower, COMPACT, data)
    assert (Tower(), len(many)) == decode_from(Tower, COMPACT, many, 0)
    assert CASTLE == decode(
        Castle, COMPACT, encode(CASTLE, COMPACT)[:-1] + bytes.fromhex("01 07 01 aa")
    )


def test_version_encodes_only_its_own_fields() -> None:
    moat = Moat(old=1, depth=2, fish=["carp"], bridge="b")

    encoded = {version: encode(moat, version).hex(" ") for version in (1, 2, 3)}

    assert "00 01 00 02 00 01 62" == encoded[1]
    assert "00 02 00 00 00 01 00 04 63 61 72 70 00 01 62" == encoded[2] == encoded[3]
    assert Moat(old=1, depth=2, fish=[], bridge="b") == decode(Moat, 1, bytes.fromhex(encoded[1]))
    later = decode(Moat, 2, bytes.fromhex(encoded[2]))
    assert Moat(old=-1, depth=2, fish=["carp"], bridge="b") == later


def test_decoded_messages_do_not_share_lists() -> None:
    first, second = (decode(Moat, 1, bytes.fromhex("0001 0002 0000")) for _ in range(2))

    assert first.fish == []
    assert first.fish is not second.fish


def test_invalid_utf_8_is_replaced() -> None:
    """
    As in Java, where no string is malformed.
    """
    moat = decode(Moat, 2, bytes.fromhex("0002 00000000 0001 ff"))

    assert "\ufffd" == moat.bridge


@pytest.mark.parametrize(
    ("cls", "version", "data", "reason"),
    [
        (Moat, 1, "0001 0002 ffff", "Moat version 1: Moat.bridge may not be null"),
        (Moat, 2, "0002 ffffffff 0000", "Moat version 2: Moat.fish may not be null"),
        (Moat, 2, "0002 00000009 0000", "Moat.fish has 9 elements, which do not fit into 2 bytes"),
        (Moat, 2, "0002 00000000 0005 61", "Moat.bridge has 5 bytes, of which 1 are there"),
        (Moat, 3, "0002 00000001 fffe", "Moat.fish may not be null"),
        (Moat, 3, "0002 7fffffff", "Moat.fish has 2147483647 elements"),
        (Tower, COMPACT, "0000 01  00 05 00000001 00", "tagged field 0 is -1 bytes longer"),
        (Tower, COMPACT, "0000 01  00 03 00000001", "tagged field 0 is 1 bytes longer"),
        (Tower, COMPACT, "0000 01  09 7f aa", "tagged field 9 ends after"),
        (Tower, COMPACT, "0000 01  ffffffffff 01", "does not end"),
        (Tower, COMPACT, "0000 04  09 01 aa", "index out of bounds"),
        (Tower, COMPACT, "0000 ffffffff0f", "has 4294967295 tagged fields, 1000 are the limit"),
        (
            Castle,
            COMPACT,
            f"{CASTLE_BYTES[COMPACT][:-2]} 01 07 02 aa",
            "tagged field 7 ends after the data",
        ),
    ],
)
def test_malformed_data_is_refused_with_the_field_and_the_problem(
    cls: type[Message], version: int, data: str, reason: str
) -> None:
    with pytest.raises(DecodeError, match=reason):
        decode(cls, version, bytes.fromhex(data))


@pytest.mark.parametrize("data", ["0002 ffffffff ffff", "0002 fffffff0 8000"])
def test_any_negative_length_means_null(data: str) -> None:
    moat = decode(Moat, 3, bytes.fromhex(data))

    assert moat.fish is None
    assert moat.bridge is None


@given(name=st.text(min_size=1, max_size=3), size=st.sampled_from([126, 127, 128, 16383, 16384]))
def test_lengths_of_several_bytes_survive_a_round_trip(name: str, size: int) -> None:
    castle = replace(
        CASTLE,
        name=name * (size // len(name.encode())),
        crest=bytes(size),
        archive=bytes(size),
        years=[1] * size,
        gates=["g"] * size,
    )

    assert castle == decode(Castle, COMPACT, encode(castle, COMPACT))


@pytest.mark.parametrize("version", [CLASSIC, COMPACT])
def test_string_has_at_most_32767_bytes(version: int) -> None:
    """
    The limit of the classic form; Kafka applies it to the compact form as well.
    """
    longest = replace(CASTLE, name="x" * 32767)

    assert longest == decode(Castle, version, encode(longest, version))
    with pytest.raises(ValueError, match=f"Castle version {version}: "):
        encode(replace(CASTLE, name="x" * 32768), version)


def test_compact_string_beyond_the_limit_is_refused() -> None:
    start = bytes.fromhex(FIXED)
    rest = bytes.fromhex(CASTLE_BYTES[COMPACT]).removeprefix(start + b"\5West")

    with pytest.raises(DecodeError, match=r"Castle\.name has 32768 bytes, too many for a string"):
        decode(Castle, COMPACT, start + b"\x81\x80\x02" + b"x" * 32768 + rest)


@pytest.mark.parametrize(
    ("whole", "versions", "changes"),
    [
        (
            CASTLE,
            [CLASSIC, COMPACT],
            [
                *(
                    {name: None}
                    for name in ("name", "crest", "years", "gates", "floors", "seal", "d")
                ),
                *({"gates": [None]}, {"floors": [None]}),
                *({"d": 2**31}, {"c": -1}, {"years": [2**31]}),
                {"floors": [Floor(level=128, rooms=[])]},
                *({"d": "1"}, {"name": 1}, {"cellar": "none"}),
            ],
        ),
        (Tower(), [COMPACT], [{name: None} for name in ("bells", "top", "height")]),
    ],
    ids=["plain fields", "tagged fields"],
)
def test_encoding_an_unsuitable_value_is_a_programming_error(
    whole: Any, versions: list[int], changes: list[dict[str, Any]]
) -> None:
    for version, change in product(versions, changes):
        error = f"^{type(whole).__name__} version {version}: "
        with pytest.raises(ValueError, match=error):
            encode(replace(whole, **change), version)


@pytest.mark.parametrize("version", [-1, 0, 4])
def test_unknown_version_is_a_programming_error(version: int) -> None:
    with pytest.raises(ValueError, match=f"Moat has no version {version}"):
        decode(Moat, version, b"")
    with pytest.raises(ValueError, match=f"Moat has no version {version}"):
        encode(Moat(depth=1, bridge=None), version)


def test_field_missing_from_a_version_requires_a_default() -> None:
    with pytest.raises(TypeError, match=r"Odd\.what needs a default: version 0 lacks it"):
        decode(Odd, 0, b"")


@pytest.mark.parametrize(
    ("cls", "version", "data"),
    [
        (Hall, 0, "7fffffff"),
        (Moat, 2, "0002 7fffffff"),
        (Castle, COMPACT, FIXED + "05 57657374 00 ffffffff07"),
        (Castle, COMPACT, FIXED + "05 57657374 00 01 00 00 ffffffff07"),
        (Tower, COMPACT, "0000 01  02 05 ffffffff0f"),
    ],
)
def test_announced_array_length_allocates_no_memory(
    cls: type[Message], version: int, data: str
) -> None:
    encoded = bytes.fromhex(data)
    with pytest.raises(DecodeError):
        decode(cls, version, encoded)
    with memory_below(100_000), pytest.raises(DecodeError):
        decode(cls, version, encoded)


@given(data=st.binary(max_size=120), cls=st.sampled_from([Castle, Tower]), start=st.booleans())
def test_random_bytes_are_decoded_or_refused(data: bytes, cls: Any, start: bool) -> None:
    try:
        decode(cls, COMPACT, bytes.fromhex(FIXED) + data if start else data)
    except DecodeError:
        return
