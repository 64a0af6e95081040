from __future__ import annotations

import struct
from pathlib import Path

import pytest
from crc32c import crc32c

from barnabas.protocol.compression import CompressionType, compress
from barnabas.protocol.records.batch import build_batch, control_batch
from barnabas.protocol.records.control import ControlRecordType
from barnabas.protocol.records.record import Record, SimpleRecord, encode_records
from tests.support.bombs import bomb, memory_below
from tests.support.dumping import KAFKAS, LOG, dump, dump_log
from tests.support.legacy_messages import Legacy, legacy_message, legacy_wrapper
from tests.support.limits import stated
from tests.support.record_bytes import sealed

INVALID = f"{KAFKAS}org.apache.kafka.common.InvalidRecordException: "
CORRUPT = f"{KAFKAS}org.apache.kafka.common.errors.CorruptRecordException: "
KAFKA = f"{KAFKAS}org.apache.kafka.common.KafkaException: "
ILLEGAL = f"{KAFKAS}java.lang.IllegalArgumentException: "


def batch(*values: bytes, base_offset: int = 0) -> bytes:
    records = [SimpleRecord(1, None, value) for value in values]
    return bytes(build_batch(records, base_offset=base_offset))


def batch_of(payload: bytes, count: int = 1, compression: int = 0) -> bytes:
    codec = CompressionType(compression)
    return bytes(sealed(payload, count, last_offset_delta=0, timestamp=1, compression=codec))


def patched(data: bytes, position: int, new: bytes) -> bytes:
    return data[:position] + new + data[position + len(new) :]


NESTED = legacy_message(
    1,
    0,
    None,
    bytes(compress(CompressionType.GZIP, legacy_message(1, 0, None, b"v", attributes=1))),
    attributes=CompressionType.GZIP,
)
"""A wrapper whose message says that it is a wrapper."""


@pytest.mark.parametrize("kept", [1, 17, 60, 68])
def test_torn_batch_is_reported_as_trailing_bytes(kept: int, tmp_path: Path) -> None:
    data = batch(b"x") + batch(b"y", base_offset=1)[:kept]

    dumped = dump_log(tmp_path, data)
    limited = dump_log(tmp_path, data, "--max-bytes", "100")

    assert 0 == dumped.status
    assert f"Found {kept} invalid bytes at the end of {LOG}" == dumped.lines[-1]
    assert [dumped.lines[0]] == limited.lines


def test_wrong_checksum_is_reported_and_the_rest_is_printed(tmp_path: Path) -> None:
    dumped = dump_log(tmp_path, patched(batch(b"x"), 17, b"\0\0\0\0"), "--print-data-log")

    assert dumped.lines[0].endswith("crc: 0 isvalid: false")
    assert dumped.lines[1].endswith("payload: x")


def test_zeros_are_reported_as_an_invalid_batch_after_the_valid_ones(tmp_path: Path) -> None:
    dumped = dump_log(tmp_path, batch(b"x") + bytes(100))

    assert (1, 1) == (dumped.status, len(dumped.lines))
    assert (
        f"{CORRUPT}Found record size 0 smaller than minimum record overhead (14) in file "
        f"{tmp_path / LOG}.\n"
    ) == dumped.err


def test_unknown_codec_is_reported_within_its_line(tmp_path: Path) -> None:
    dumped = dump_log(tmp_path, patched(batch(b"x"), 21, b"\0\x07"))

    assert dumped.out.endswith("deleteHorizonMs: OptionalLong.empty")
    assert f"{ILLEGAL}Unknown compression type id: 7\n" == dumped.err


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"\x02\0", "Found invalid record structure"),
        (b"", "Incorrect declared batch size, premature EOF reached"),
        (
            b"\x28\0\0\0\x01\x01\0",
            "Invalid record size: expected 20 bytes in record payload, but instead the buffer has "
            "only 6 remaining bytes.",
        ),
        (
            b"\x0e\0\0\0\x01\x01\0\0",
            "Invalid record size: expected to read 7 bytes in record payload, but instead read 6",
        ),
        (b"\x0c\0\0\0\x0e\x01\0", "Found invalid record structure"),
        (b"\x0c\0\0\0\x01\x01\x01", "Found invalid number of record headers -1"),
        (
            b"\x0c\0\0\0\x01\x01\x08",
            "Found invalid number of record headers. 4 is larger than the remaining size of the "
            "buffer",
        ),
        (b"\x10\0\0\0\x01\x01\x02\x01\x01", "Invalid negative header key size -1"),
        (
            b"\x0c\0\0\0\x01\x01\0\xff",
            "Incorrect declared batch size, records still remaining in file",
        ),
    ],
)
def test_malformed_records_are_reported(payload: bytes, reason: str, tmp_path: Path) -> None:
    dumped = dump_log(tmp_path, batch_of(payload), "--deep-iteration")

    assert (1, 1) == (dumped.status, len(dumped.lines))
    assert f"{INVALID}{reason}\n" == dumped.err


@pytest.mark.parametrize("codec", [codec for codec in CompressionType if codec])
def test_decompression_bomb_is_reported_as_a_decompression_error(
    codec: CompressionType, tmp_path: Path
) -> None:
    """
    The batch and everything before it is printed; memory stays within the limit of a batch.
    """
    data = batch(b"x") + bomb(codec, base_offset=1)

    with memory_below(3 * int(stated("decompressed"))):
        dumped = dump_log(tmp_path, data, "--print-data-log")

    assert 1 == dumped.status
    assert dumped.lines[1].endswith("payload: x")
    assert dumped.lines[-1].startswith("baseOffset: 1 ")
    assert f"{KAFKA}Failed to decompress record stream\n" == dumped.err


def test_records_before_a_malformed_one_are_printed_unless_compressed(tmp_path: Path) -> None:
    """
    Kafka decompresses all of a batch before it prints the first record.
    """
    good = bytes(encode_records([Record(0, 1, None, b"good")], 0, 1))

    plain = dump_log(tmp_path, batch_of(good + b"\xff", 2), "--print-data-log")
    compressed = dump_log(tmp_path, batch_of(good + b"\xff", 2, 1), "--print-data-log")

    assert [True] == ["good" in line for line in plain.lines[1:]]
    assert [] == compressed.lines[1:]
    assert f"{INVALID}Incorrect declared batch size, premature EOF reached\n" == compressed.err


@pytest.mark.parametrize(
    ("codec", "payload", "reason"),
    [
        (1, b"no gzip", "java.util.zip.ZipException: Not in GZIP format"),
        (
            1,
            b"\x1f\x8b\x07" + bytes(20),
            "java.util.zip.ZipException: Unsupported compression method",
        ),
        (1, b"\x1f\x8b\x08", "java.io.EOFException"),
        (3, b"\x04", "java.io.IOException: Stream ended prematurely"),
        (3, bytes(20), "java.io.IOException: Stream unsupported (invalid magic bytes)"),
        (
            3,
            bytes.fromhex("04224d18 e0 40 82 0000"),
            "java.lang.RuntimeException: Version 3 is unsupported",
        ),
        (
            3,
            bytes.fromhex("04224d18 60 40 00 0000"),
            "java.io.IOException: Stream frame descriptor corrupted",
        ),
        (3, bytes.fromhex("04224d18 60 40"), "java.nio.BufferUnderflowException"),
        (4, b"no zstd", "Failed to decompress record stream"),
    ],
)
def test_malformed_compressed_data_is_reported(
    codec: int, payload: bytes, reason: str, tmp_path: Path
) -> None:
    data = patched(batch_of(payload), 22, bytes([codec]))

    dumped = dump_log(tmp_path, data, "--deep-iteration")

    assert f"{KAFKA}{reason}\n" == dumped.err


@pytest.mark.parametrize(
    ("data", "shown", "reason"),
    [
        (
            legacy_message(1, 5, b"k", b"v")[:16] + b"\xff" + bytes(30),
            ["offset: 5"],
            f"{ILLEGAL}Invalid magic used in LegacyRecord: -1",
        ),
        (
            legacy_message(1, 5, b"k", None, attributes=1),
            ["offset: 5 position: 0"],
            f"{INVALID}Found invalid compressed record set with null value (magic = 1)",
        ),
        (
            legacy_wrapper(1, CompressionType.GZIP, [Legacy(3, None, b"v")], offset=1),
            ["offset: 1 position: 0"],
            f"{INVALID}Found invalid wrapper offset in compressed v1 message set, wrapper offset "
            "'1' is less than the last inner message offset '3' and it is not zero.",
        ),
        (
            legacy_wrapper(1, CompressionType.ZSTD, [Legacy(0, None, b"v")]),
            ["offset: 0 position: 0"],
            f"{INVALID}Invalid wrapper compressionType found in legacy deep record iterator 1",
        ),
        (
            NESTED,
            ["offset: 0 position: 0"],
            f"{INVALID}Inner messages must not be compressed",
        ),
        (
            patched(legacy_message(0, 0, None, b"v"), 22, b"\0\0\0\x7f"),
            ["offset: 0 position: 0", "| offset: 0 NoTimestampType: -1 keySize: -1 valueSize: 127"],
            f"{ILLEGAL}newLimit > capacity: (127 > 1)",
        ),
    ],
    ids=["magic", "no value", "offset", "zstd", "nested", "size"],
)
def test_malformed_messages_of_old_versions_are_reported(
    data: bytes, shown: list[str], reason: str, tmp_path: Path
) -> None:
    dumped = dump_log(tmp_path, data, "--print-data-log")

    assert shown == [line[: len(start)] for line, start in zip(dumped.lines, shown, strict=False)]
    assert f"{reason}\n" == dumped.err


def test_json_of_a_wrapper_inside_a_wrapper_ends_before_it(tmp_path: Path) -> None:
    dumped = dump_log(tmp_path, NESTED, "--print-data-log", "--format", "json")

    assert "Inner messages must not be compressed" in dumped.err
    assert ["log", "batch"] == [each["type"] for each in dumped.objects]


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (b"\0\0", b"", f"{INVALID}Invalid value size found for control record key. Must have at "
         "least 4 bytes, but found only 2"),
        (b"\xff\xff\0\0", b"", f"{INVALID}Invalid version found for control record: -1. "
         "May indicate data corruption"),
        (b"\0\0\0\x01", b"\0", f"{KAFKAS}java.nio.BufferUnderflowException"),
        (b"\0\0\0\x03", b"\0\0", f"{KAFKAS}java.nio.BufferUnderflowException"),
        (b"\0\0\0\x06", b"\0\0\0", f"{KAFKAS}java.lang.RuntimeException: non-nullable field voters "
         "was serialized as null"),
    ],
)  # fmt: skip
def test_malformed_control_record_is_reported_after_its_metadata(
    key: bytes, value: bytes, reason: str, tmp_path: Path
) -> None:
    data = build_batch([SimpleRecord(1, key, value)], is_control=True)

    dumped = dump_log(tmp_path, bytes(data), "--deep-iteration")

    assert dumped.out.endswith("headerKeys: []")
    assert f"{reason}\n" == dumped.err


@pytest.mark.parametrize(
    ("kind", "value", "printed"),
    [
        (99, b"", "controlType: UNKNOWN(99)"),
        (ControlRecordType.SNAPSHOT_FOOTER, b"\0\0\0", 'SnapshotFooter {"version":0}'),
    ],
)
def test_control_record_is_printed_by_its_type(
    kind: int, value: bytes, printed: str, tmp_path: Path
) -> None:
    dumped = dump_log(tmp_path, bytes(control_batch(kind, value, 1)), "--deep-iteration")

    assert dumped.lines[-1].endswith(f" headerKeys: [] {printed}")


def with_crc(body: bytes) -> bytes:
    return struct.pack(">hI", 1, crc32c(body)) + body


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\0", "Snapshot failed schema validation: null"),
        (
            b"\0\x07",
            "Snapshot failed schema validation: Snapshot contained an unknown file version 7",
        ),
        (b"\0\x01\0\0", "Snapshot failed schema validation: null"),
        (
            with_crc(b"\xff\xff\xff\xff"),
            "Snapshot failed schema validation: non-nullable field producerEntries was serialized "
            "as null",
        ),
        (
            with_crc(b"\0\0\0\x05"),
            "Snapshot failed schema validation: Tried to allocate a collection of size 5, but "
            "there are only 0 bytes remaining.",
        ),
        (with_crc(b"\0\0\0\x02" + bytes(46)), "Snapshot failed schema validation: null"),
        (
            patched(with_crc(b"\0\0\0\0"), 2, b"\0\0\0\0"),
            "Snapshot is corrupt (CRC is no longer valid). Stored crc: 0. Computed crc: 1214729159",
        ),
    ],
)
def test_malformed_producer_snapshot_is_reported_and_the_next_file_is_dumped(
    data: bytes, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "00000000000000000007.snapshot"
    path.write_bytes(data)

    dumped = dump("--files", path)

    assert (0, f"Dumping {path}\n", f"{reason}\n") == dumped
