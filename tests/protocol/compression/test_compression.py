from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import zlib

import pytest
from cramjam import snappy as raw_snappy
from hypothesis import given
from hypothesis import strategies as st
from lz4 import frame as lz4_frame  # type: ignore[import-untyped] # It has no annotations.

from barnabas.protocol.compression import (
    CompressionType,
    CorruptCompressedData,
    DecompressedTooLarge,
    UnknownCompression,
    compress,
    decompress,
    decompress_chunks,
    most_decompressed_bytes,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from tests.support.bombs import memory_below
from tests.support.limits import stated

NONE, GZIP, SNAPPY, LZ4, ZSTD = CompressionType
CODECS = [GZIP, SNAPPY, LZ4, ZSTD]
ONE_RECORD = bytes.fromhex("14 00 00 00 04 6b31 04 7631 00")
TEXT = b"".join(b"line %d of some text that repeats\n" % (line % 700) for line in range(9000))
NOISE = random.Random(1).randbytes(100_000)


@pytest.mark.parametrize(
    ("codec", "data"),
    [
        (GZIP, "1f8b08000000000000ff 1361606060c936642933640000 1ec8d666 0b000000"),
        (LZ4, "04224d18 60 40 82 0b000080 14000000046b3104763100 00000000"),
        (SNAPPY, "82534e4150505900 00000001 00000001 0000000d 0b 28 14000000046b3104763100"),
        (ZSTD, "28b52ffd 0058 580000 14000000046b3104763100 010000"),
    ],
)
def test_record_is_compressed_as_in_kafka(codec: CompressionType, data: str) -> None:
    expected = bytes.fromhex(data)

    assert expected == compress(codec, ONE_RECORD)
    assert ONE_RECORD == decompress(codec, expected)


def test_gzip_batch_equals_that_of_kafka() -> None:
    batch = build_batch([SimpleRecord(1700000000000, b"k1", b"v1")], compression=GZIP)

    assert bytes.fromhex("02 085b02a7 0001") == batch[16:23]


@pytest.mark.parametrize("codec", list(CompressionType))
@pytest.mark.parametrize("data", [b"", b"x", TEXT, NOISE, bytes(70_000), NOISE[:65536]])
@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
def test_compressed_data_survives_a_round_trip(
    codec: CompressionType, data: bytes, wrap: type[bytes]
) -> None:
    compressed = wrap(bytes(compress(codec, wrap(data))))

    assert data == bytes(decompress(codec, compressed))
    chunks = list(decompress_chunks(codec, compressed, 1000))
    assert data == b"".join(chunks)
    assert all(chunks)
    if codec in {NONE, GZIP, ZSTD}:
        assert all(len(chunk) <= 1000 for chunk in chunks)


@pytest.mark.parametrize(
    ("codec", "low", "high"), [(GZIP, 1, 9), (LZ4, 3, 12), (LZ4, 9, 17), (ZSTD, -5, 19)]
)
def test_higher_compression_level_gives_smaller_output(
    codec: CompressionType, low: int, high: int
) -> None:
    """
    For LZ4, level 9 is Kafka's default and the fast path.
    """
    fast, slow = (compress(codec, TEXT, level) for level in (low, high))

    assert len(slow) < len(fast)
    assert TEXT == decompress(codec, fast) == decompress(codec, slow)


@pytest.mark.parametrize("number", [5, 6, 7])
def test_unknown_codec_is_an_unknown_server_error(number: int) -> None:
    with pytest.raises(UnknownCompression, match=f"compression type id: {number}") as caught:
        CompressionType.of(number)

    assert ErrorCode.UNKNOWN_SERVER_ERROR == caught.value.code


@pytest.mark.parametrize("codec", CODECS)
def test_truncated_compressed_stream_is_detected(codec: CompressionType) -> None:
    """
    A snappy stream may end behind any block.
    """
    whole = bytes(compress(codec, TEXT[:50_000]))
    good = {len(whole)}
    if codec is SNAPPY:
        block = int.from_bytes(whole[16:20])
        good |= {*range(16, 20), *range(20 + block, 24 + block)}
    if codec is ZSTD:
        good.add(0)
    for kept in [*range(200), *range(200, len(whole), 17), len(whole) - 1]:
        if kept not in good:
            with pytest.raises(CorruptCompressedData):
                decompress(codec, whole[:kept])


@pytest.mark.parametrize("codec", CODECS)
def test_damaged_stream_gives_data_or_a_compression_error(codec: CompressionType) -> None:
    chance = random.Random(7)
    whole = bytes(compress(codec, TEXT[:3000]))
    for _ in range(2000):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 1, 2, 4))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            found = decompress(codec, data)
        except CorruptCompressedData:
            continue
        if codec is GZIP:
            assert TEXT[:3000] == found


@given(data=st.binary(max_size=300), start=st.integers(0, 30), codec=st.sampled_from(CODECS))
def test_arbitrary_bytes_give_a_compression_error(
    data: bytes, start: int, codec: CompressionType
) -> None:
    head = bytes(compress(codec, ONE_RECORD))[:start]
    for chunks in (decompress_chunks(codec, head + data), decompress_chunks(codec, data)):
        with contextlib.suppress(CorruptCompressedData):
            assert all(chunks)


# gzip


def test_gzip_members_are_joined() -> None:
    member = bytes(compress(GZIP, TEXT))

    assert TEXT + TEXT == decompress(GZIP, member + member)
    assert TEXT == decompress(GZIP, member + b"no member at all, though long enough")
    assert TEXT == decompress(GZIP, member + member[:18])
    with pytest.raises(CorruptCompressedData):
        decompress(GZIP, member + member[:19])


def test_gzip_header_may_have_all_optional_parts() -> None:
    plain = bytes(compress(GZIP, ONE_RECORD))
    header = plain[:3] + b"\xfe" + plain[4:10] + b"\x02\0xx" + b"name\0" + b"comment\0"
    checksum = (zlib.crc32(header) & 0xFFFF).to_bytes(2, "little")

    assert ONE_RECORD == decompress(GZIP, header + checksum + plain[10:])
    for damaged in (header + b"\0\0" + plain[10:], header, header[:12], header[:-3]):
        with pytest.raises(CorruptCompressedData):
            decompress(GZIP, damaged)


def test_gzip_trailer_is_verified_last() -> None:
    """
    The data before it is returned first, as it may contain an error that takes precedence.
    """
    chunks = decompress_chunks(GZIP, bytes(compress(GZIP, ONE_RECORD))[:-8] + bytes(8))

    assert ONE_RECORD == next(chunks)
    with pytest.raises(CorruptCompressedData, match="checksum"):
        next(chunks)


# snappy


def test_bare_snappy_block_is_accepted() -> None:
    """
    Some clients send no container.
    """
    assert TEXT == decompress(SNAPPY, bytes(raw_snappy.compress_raw(TEXT)))
    assert b"x" == decompress(SNAPPY, bytes(raw_snappy.compress_raw(b"x")))


def test_joined_snappy_streams_are_accepted() -> None:
    """
    A second header may stand where a block could begin; other bytes there end the stream.
    """
    stream = bytes(compress(SNAPPY, TEXT))

    assert TEXT + TEXT == decompress(SNAPPY, stream + stream)
    assert TEXT == decompress(SNAPPY, stream + stream[:8])
    assert TEXT == decompress(SNAPPY, stream + stream[:4] + bytes(20))
    with pytest.raises(CorruptCompressedData, match="version 0"):
        decompress(SNAPPY, stream + stream[:8] + bytes(8))


@pytest.mark.parametrize("length", [-1, -(2**31), 1000])
def test_snappy_block_with_an_impossible_size_is_refused(length: int) -> None:
    header = bytes(compress(SNAPPY, b""))

    with pytest.raises(CorruptCompressedData, match="cannot have"):
        decompress(SNAPPY, header + length.to_bytes(4, "big", signed=True) + bytes(20))


def test_snappy_block_cannot_announce_more_than_it_can_hold() -> None:
    """
    4 GiB are not allocated because ten bytes announce them.
    """
    with pytest.raises(CorruptCompressedData, match="cannot become 4294967295 bytes"):
        decompress(SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(5))


# LZ4


@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
@pytest.mark.parametrize("block_checksum", [False, True])
@pytest.mark.parametrize("content_checksum", [False, True])
@pytest.mark.parametrize("store_size", [False, True])
def test_lz4_frames_with_all_options_of_kafka_are_accepted(
    block_size: int, block_checksum: bool, content_checksum: bool, store_size: bool
) -> None:
    data = TEXT[:70_000] + NOISE
    frame = lz4_frame.compress(
        data,
        block_linked=False,
        block_size=block_size,
        block_checksum=block_checksum,
        content_checksum=content_checksum,
        store_size=store_size,
    )

    assert data == decompress(LZ4, frame)
    assert data == decompress(LZ4, frame + b"what follows the frame")


def test_lz4_chunks_stay_unchanged_while_referenced() -> None:
    data = bytes(range(256)) * 2048
    frame = compress(LZ4, data)

    assert [data[at : at + 65_536] for at in range(0, len(data), 65_536)] == list(
        decompress_chunks(LZ4, frame)
    )


def test_unreferenced_lz4_chunks_are_not_copied() -> None:
    """
    A copy would cost a third of the decompression time of usual records.
    """
    chunks = iter(decompress_chunks(LZ4, compress(LZ4, bytes(range(256)) * 2048)))
    next(chunks)

    with memory_below(32_768):
        assert [65_536] * 6 == [len(next(chunks)) for _ in range(6)]


def test_linked_lz4_blocks_are_refused() -> None:
    """
    As in Kafka's Lz4BlockInputStream.
    """
    with pytest.raises(CorruptCompressedData, match="not supported"):
        decompress(LZ4, lz4_frame.compress(TEXT, block_linked=True))


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        ("", "ends early"),
        ("04224d19 60 40 82 00000000", "There is no LZ4 frame"),
        ("04224d18 a0 40 82 00000000", "not supported"),
        ("04224d18 61 40 82 00000000", "not supported"),
        ("04224d18 60 30 82 00000000", "not supported"),
        ("04224d18 60 c0 82 00000000", "not supported"),
        ("04224d18 60 41 82 00000000", "not supported"),
        ("04224d18 60 40 83 00000000", "descriptor of an LZ4 frame is corrupt"),
        ("04224d18 60 40 82 01000100 00", "exceeds 65536"),
        ("04224d18 60 40 82 02000080 00", "ends early"),
        ("04224d18 60 40 82 02000000 ffff 00000000", "corrupt"),
        ("04224d18 60 40 82", "ends early"),
    ],
)
def test_lz4_frame_that_kafka_refuses_is_refused(frame: str, reason: str) -> None:
    with pytest.raises(CorruptCompressedData, match=reason):
        decompress(LZ4, bytes.fromhex(frame))


def test_truncated_lz4_frame_is_refused_at_every_length() -> None:
    frame = lz4_frame.compress(
        TEXT[:70_000],
        block_linked=False,
        block_checksum=True,
        content_checksum=True,
        store_size=True,
    )
    assert TEXT[:70_000] == decompress(LZ4, frame)

    for size in range(len(frame)):
        with pytest.raises(CorruptCompressedData, match="ends early"):
            decompress(LZ4, frame[:size])


def test_wrong_lz4_block_checksum_is_detected() -> None:
    frame = bytearray(
        lz4_frame.compress(NOISE[:500], block_linked=False, block_checksum=True, store_size=False)
    )

    frame[-8] ^= 1
    with pytest.raises(CorruptCompressedData, match="does not fit its checksum"):
        decompress(LZ4, frame)


# zstd


def test_zstd_frames_are_joined() -> None:
    frame = bytes(compress(ZSTD, TEXT))

    assert TEXT + TEXT == decompress(ZSTD, frame + frame)
    with pytest.raises(CorruptCompressedData):
        decompress(ZSTD, frame + b"junk")


@pytest.mark.parametrize(
    "beginning", [b"\x52", b"\x28", b"\x28\xb5\x2f\xfd\x00", b"\x50\x2a\x4d\x18\xff"]
)
def test_truncated_second_zstd_frame_is_accepted_as_in_kafka(beginning: bytes) -> None:
    """
    Unless that frame begins where Kafka starts its next read.
    """
    frame = bytes(compress(ZSTD, TEXT))
    edge = bytes(compress(ZSTD, random.Random(5).randbytes(131_063)))

    assert 131_075 == len(edge)
    assert TEXT == decompress(ZSTD, frame + beginning)
    with pytest.raises(CorruptCompressedData, match="ends early"):
        decompress(ZSTD, edge + beginning)


# All


def test_compression_library_is_loaded_on_first_use() -> None:
    """
    A broker that sees only gzip loads none of the others.
    """
    program = (
        "import sys\n"
        "from barnabas.protocol.compression import *\n"
        "import barnabas.protocol.records.batch\n"
        "libraries = {'lz4', 'cramjam', 'backports.zstd', 'compression.zstd', 'zlib'}\n"
        "loaded = libraries & set(sys.modules)\n"
        "assert loaded <= {'zlib'}, loaded\n"
        "compress(CompressionType.LZ4, b'x')\n"
        "assert {'cramjam'} == libraries & set(sys.modules) - {'zlib'}\n"
    )

    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize("codec", [GZIP, ZSTD])
def test_decompression_beyond_the_limit_is_refused(codec: CompressionType) -> None:
    """
    No more than the limit is decompressed. snappy and LZ4 expand at most by factors of 22 and 255.
    """
    most = int(stated("decompressed"))
    bomb = compress(codec, bytes(most + 1))
    assert most == most_decompressed_bytes(len(bomb))

    with pytest.raises(CorruptCompressedData, match=f"become more than {most} bytes"):
        decompress(codec, bomb)
    sizes: list[int] = []
    with pytest.raises(CorruptCompressedData, match="become more than"):
        sizes.extend(map(len, decompress_chunks(codec, bomb)))

    assert sum(sizes) <= most
    assert most == len(decompress(codec, compress(codec, bytes(most))))


def test_decompression_limit_grows_with_the_input() -> None:
    assert stated("decompressed-ratio") * 2**20 == most_decompressed_bytes(2**20)
    assert 2**31 - 1 == most_decompressed_bytes(2**30), "the largest buffer of Java"


@pytest.mark.parametrize("codec", [GZIP, ZSTD, CompressionType.LZ4, CompressionType.SNAPPY])
def test_lower_decompression_limit_may_be_set(codec: CompressionType) -> None:
    data = compress(codec, bytes(100_000))

    assert 100_000 == sum(map(len, decompress_chunks(codec, data, most_bytes=100_000)))
    with pytest.raises(DecompressedTooLarge, match="become more than 99999 bytes"):
        list(decompress_chunks(codec, data, most_bytes=99_999))
