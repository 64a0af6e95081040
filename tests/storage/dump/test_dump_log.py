from __future__ import annotations

import re
from pathlib import Path

import pytest

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.control import ControlRecordType, EndTransactionMarker
from barnabas.protocol.records.record import Header, SimpleRecord
from barnabas.storage.fs.disk import DiskFiles
from tests.storage.producers.test_producer_snapshots import TWO
from tests.support.clock import StillClock
from tests.support.dumping import dump, dump_log
from tests.support.legacy_messages import Legacy, legacy_message, legacy_wrapper
from tests.support.logs import config_with, new_log
from tests.support.record_bytes import THREE_RECORDS

GOLDEN_BATCH = bytes.fromhex("0000000000000064 00000055 00000007") + THREE_RECORDS[16:]
BATCH_LINE = (
    "baseOffset: 100 lastOffset: 102 count: 3 baseSequence: -1 lastSequence: -1 producerId: -1 "
    "producerEpoch: -1 partitionLeaderEpoch: 7 isTransactional: false isControl: false "
    "deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 1700000000005 size: 97 magic: 2 "
    "compresscodec: none crc: 793853916 isvalid: true"
)
RECORD_LINES = [
    "| offset: 100 CreateTime: 1700000000000 keySize: 2 valueSize: 2 sequence: -1 headerKeys: []",
    "| offset: 101 CreateTime: 1700000000005 keySize: -1 valueSize: 2 sequence: -1 "
    "headerKeys: [h,n]",
    "| offset: 102 CreateTime: 1699999999999 keySize: 2 valueSize: -1 sequence: -1 headerKeys: []",
]
CONTENTS = [" key: k1 payload: v1", " payload: v2", " key: k3"]


@pytest.mark.scenario(79)
def test_dump_prints_batches_records_and_contents_exactly_as_kafkas_tool(tmp_path: Path) -> None:
    name = "00000000000000000100.log"

    shallow = dump_log(tmp_path, GOLDEN_BATCH, name=name)
    deep = dump_log(tmp_path, GOLDEN_BATCH, "--deep-iteration", name=name)
    printed = dump_log(tmp_path, GOLDEN_BATCH, "--print-data-log", name=name)

    path = tmp_path / name
    assert (f"Dumping {path}\nLog starting offset: 100\n{BATCH_LINE}\n", "") == shallow[1:]
    assert [BATCH_LINE, *RECORD_LINES] == deep.lines
    assert f"Non-consecutive offsets in {path}\n  -1 is followed by 100\n" == deep.err
    assert [BATCH_LINE, *map(str.__add__, RECORD_LINES, CONTENTS)] == printed.lines
    assert 0 == shallow.status == deep.status == printed.status


def test_record_metadata_can_be_skipped(tmp_path: Path) -> None:
    """
    A record without anything left to print is an empty line, as is a control record.
    """
    data = build_batch(
        [SimpleRecord(5, b"", b"v"), SimpleRecord(5, None, None), SimpleRecord(5, b"k", None)]
    ) + EndTransactionMarker(ControlRecordType.ABORT, 3).batch(5, base_offset=3, producer_id=4)

    dumped = dump_log(tmp_path, data, "--print-data-log", "--skip-record-metadata")

    assert ["| key:  payload: v", "", "| key: k"] == dumped.lines[1:4]
    assert [""] == dumped.lines[5:]


def test_dump_prints_producer_sequence_codec_and_delete_horizon_of_a_batch(tmp_path: Path) -> None:
    data = build_batch(
        [SimpleRecord(5, b"k", b"v"), SimpleRecord(7, b"k", b"v")],
        compression=CompressionType.ZSTD,
        log_append_time=None,
        producer_id=4000,
        producer_epoch=3,
        base_sequence=2**31 - 1,
        is_transactional=True,
        delete_horizon_ms=9,
    )

    batch, *records = dump_log(tmp_path, data, "--deep-iteration").lines

    assert "baseSequence: 2147483647 lastSequence: 0 producerId: 4000 producerEpoch: 3" in batch
    assert "isTransactional: true isControl: false deleteHorizonMs: OptionalLong[9]" in batch
    assert "compresscodec: zstd" in batch
    assert ["2147483647", "0"] == [re.findall(r" sequence: (\S+)", line)[0] for line in records]
    assert [" CreateTime: 5 ", " CreateTime: 7 "] == [line[11:26] for line in records]


def test_invalid_utf_8_is_printed_as_replacement_characters(tmp_path: Path) -> None:
    headers = (Header("\ufffd,", None), Header("", b"x"))
    record = SimpleRecord(0, b"\xff\xc3", b"a\xed\xa0\x80b\xf0\x9f\x98", headers)

    line = dump_log(tmp_path, build_batch([record]), "--print-data-log").lines[1]

    assert line.endswith("headerKeys: [\ufffd,,] key: \ufffd\ufffd payload: a\ufffdb\ufffd")


def test_messages_of_versions_0_and_1_are_printed(tmp_path: Path) -> None:
    inner = [Legacy(0, b"a", b"1", 5), Legacy(1, None, b"2", 6)]
    data = (
        legacy_message(0, 0, b"k", None)
        + legacy_message(1, 1, None, b"v", timestamp=9, attributes=0x08)
        + legacy_wrapper(1, CompressionType.GZIP, inner, offset=3, timestamp=7)
        + legacy_wrapper(1, CompressionType.SNAPPY, inner, offset=5, timestamp=8, attributes=8)
    )

    dumped = dump_log(tmp_path, data, "--print-data-log")

    shown = [line.split(" crc: ")[0] for line in dumped.lines]
    payload = [
        line.partition(" key: ")[2] or line.partition(" payload: ")[2] for line in dumped.lines
    ]
    assert [
        "offset: 0 position: 0 NoTimestampType: -1 size: 27 magic: 0 compresscodec: none",
        "| offset: 0 NoTimestampType: -1 keySize: 1 valueSize: -1 isValid: true",
        "offset: 1 position: 27 LogAppendTime: 9 size: 35 magic: 1 compresscodec: none",
        "| offset: 1 LogAppendTime: 9 keySize: -1 valueSize: 1 isValid: true",
    ] == shown[:4]
    assert [
        "| offset: 2 CreateTime: 5 keySize: 1 valueSize: 1 isValid: true",
        "| offset: 3 CreateTime: 6 keySize: -1 valueSize: 1 isValid: true",
    ] == shown[5:7]
    assert [
        "| offset: 4 LogAppendTime: 8 keySize: 1 valueSize: 1 isValid: true",
        "| offset: 5 LogAppendTime: 8 keySize: -1 valueSize: 1 isValid: true",
    ] == shown[8:]
    assert ["k", "v", "a payload: 1", "2"] == [payload[1], payload[3], *payload[5:7]]
    assert "" == dumped.err


@pytest.mark.parametrize(
    "codec", [CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4]
)
def test_wrapper_of_version_0_has_absolute_inner_offsets(
    codec: CompressionType, tmp_path: Path
) -> None:
    """
    The header checksum of its LZ4 frame is wrong, as old clients wrote it, and must not be
    verified.
    """
    data = legacy_wrapper(0, codec, [Legacy(40, b"a", b"1"), Legacy(41, None, b"2")])

    dumped = dump_log(tmp_path, data, "--deep-iteration")

    assert ["offset: 41", "| offset: 40", "| offset: 41"] == [
        line.split(" NoTimestampType")[0].split(" position")[0] for line in dumped.lines
    ]


@pytest.mark.scenario(80)
def test_producer_snapshots_and_transaction_indexes_are_printed(tmp_path: Path) -> None:
    snapshot = tmp_path / "00000000000000000042.snapshot"
    snapshot.write_bytes(TWO)
    index = tmp_path / "00000000000000000000.txnindex"
    index.write_bytes(
        bytes.fromhex("0000 0000000000000fa0 000000000000000c 000000000000001e 000000000000001f")
    )

    dumped = dump("--files", f"{snapshot},{index}")

    assert (
        f"Dumping {snapshot}\n"
        "producerId: 4000 producerEpoch: 3 coordinatorEpoch: 9 "
        "currentTxnFirstOffset: OptionalLong[12] lastTimestamp: 1700000000000 firstSequence: 5 "
        "lastSequence: 7 lastOffset: 20 offsetDelta: 2 timestamp: 1700000000000\n"
        "producerId: 4001 producerEpoch: 0 coordinatorEpoch: -1 "
        "currentTxnFirstOffset: OptionalLong.empty lastTimestamp: 1700000000001\n"
        f"Dumping {index}\n"
        "version: 0 producerId: 4000 firstOffset: 12 lastOffset: 30 lastStableOffset: 31\n"
    ) == dumped.out


def test_dump_of_an_open_log_changes_no_file(tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    config = config_with(segment_index_bytes=1000, index_interval_bytes=0)
    log = new_log(directory, config, files=DiskFiles(), clock=StillClock(0))
    for timestamp in (1, 2, 3):
        batch = build_batch([SimpleRecord(timestamp, None, b"x")])
        log.append_as_leader(memoryview(batch), 0)
    files = [
        path for path in directory.iterdir() if path.suffix in {".log", ".index", ".timeindex"}
    ]
    before = [(path.stat().st_size, path.stat().st_mtime_ns) for path in files]

    dumped = dump("--files", ",".join(str(path) for path in sorted(files)))

    assert 3 == dumped.out.count("baseOffset: ")
    assert "offset: 1 position: 69\noffset: 2 position: 138\n" in dumped.out
    assert before == [(path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    log.close()
