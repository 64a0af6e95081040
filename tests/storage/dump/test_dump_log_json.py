from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.control import ControlRecordType, EndTransactionMarker
from barnabas.protocol.records.record import Header, SimpleRecord
from barnabas.storage.dump.findings import KINDS
from tests.support.dumping import LOG, dump, dump_log
from tests.support.legacy_messages import Legacy, legacy_wrapper

PAGE = Path(__file__).parents[3] / "docs" / "dump-log.md"


def json_of(directory: Path, data: bytes | bytearray, *options: str) -> list[dict[str, Any]]:
    return dump_log(directory, bytes(data), "--format", "json", *options).objects


def test_json_of_a_batch_and_its_records_has_all_their_fields(tmp_path: Path) -> None:
    record = SimpleRecord(5, b"\xff", b"v", (Header("h", None), Header("h", b"\xfe")))
    data = build_batch(
        [record, SimpleRecord(6, None, None)], compression=CompressionType.GZIP, producer_id=7
    )

    log, batch, first, second = json_of(tmp_path, data, "--print-data-log")

    path = str(tmp_path / LOG)
    assert {"type": "log", "file": path, "startOffset": 0} == log
    assert {
        "type": "batch",
        "file": path,
        "baseOffset": 0,
        "lastOffset": 1,
        "count": 2,
        "baseSequence": -1,
        "lastSequence": -1,
        "producerId": 7,
        "producerEpoch": -1,
        "partitionLeaderEpoch": -1,
        "isTransactional": False,
        "isControl": False,
        "deleteHorizonMs": None,
        "position": 0,
        "timestampType": "CreateTime",
        "baseTimestamp": 5,
        "maxTimestamp": 6,
        "size": len(data),
        "magic": 2,
        "attributes": 1,
        "compresscodec": "gzip",
        "crc": struct.unpack_from(">I", data, 17)[0],
        "isvalid": True,
    } == batch
    assert {
        "type": "record",
        "file": path,
        "offset": 0,
        "timestampType": "CreateTime",
        "timestamp": 5,
        "keySize": 1,
        "valueSize": 1,
        "sequence": -1,
        "headerKeys": ["h", "h"],
        "headers": [{"key": "h", "value": None}, {"key": "h", "value": {"base64": "/g=="}}],
        "key": {"base64": "/w=="},
        "payload": "v",
    } == first
    assert (None, None, []) == (second["key"], second["payload"], second["headers"])


def test_json_leaves_out_what_the_options_exclude(tmp_path: Path) -> None:
    data = build_batch([SimpleRecord(5, b"k", b"v")]) + EndTransactionMarker(
        ControlRecordType.COMMIT, 3
    ).batch(5, base_offset=1)

    deep = json_of(tmp_path, data, "--deep-iteration")
    bare = json_of(tmp_path, data, "--print-data-log", "--skip-record-metadata")

    assert {"key", "payload", "headers"}.isdisjoint(deep[2])
    assert {"type": "record", "file": str(tmp_path / LOG), "key": "k", "payload": "v"} == bare[2]
    assert ["log", "batch", "record", "batch"] == [told["type"] for told in bare]


def test_json_of_a_control_record_has_its_type_and_coordinator_epoch(tmp_path: Path) -> None:
    data = EndTransactionMarker(ControlRecordType.COMMIT, 3).batch(5, producer_id=4)

    told = json_of(tmp_path, data, "--deep-iteration")[-1]

    assert ("controlRecord", "COMMIT", 1, 3) == tuple(
        told[name] for name in ("type", "controlType", "controlTypeId", "coordinatorEpoch")
    )


def test_json_of_old_message_versions(tmp_path: Path) -> None:
    data = legacy_wrapper(1, CompressionType.GZIP, [Legacy(0, b"k", b"v", 9)], timestamp=9)

    _, batch, record = json_of(tmp_path, data, "--print-data-log")

    assert (1, 0, "gzip", True) == tuple(
        batch[name] for name in ("magic", "lastOffset", "compresscodec", "isvalid")
    )
    assert (0, 9, True, "k", "v") == tuple(
        record[name] for name in ("offset", "timestamp", "isValid", "key", "payload")
    )


def test_json_of_decoded_contents_is_an_object(tmp_path: Path) -> None:
    key = struct.pack(">hh", 2, 1) + b"g"
    data = build_batch([SimpleRecord(5, key, None), SimpleRecord(5, b"\0\x63", b"")])

    deleted, unknown = json_of(tmp_path, data, "--offsets-decoder")[2:]

    assert ({"type": "2", "data": {"group": "g"}}, None) == (deleted["key"], deleted["payload"])
    assert "Unknown record type 99 at offset 1, skipping." == unknown["key"]


def test_json_findings_follow_the_objects_of_all_files(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000"
    path.with_suffix(".log").write_bytes(build_batch([SimpleRecord(5, None, b"x")]))
    path.with_suffix(".index").write_bytes(struct.pack(">ii", 3, 0))
    path.with_suffix(".timeindex").write_bytes(struct.pack(">qiqi", 6, 0, 4, 3))
    names = f"{path}.index,{path}.timeindex"

    told = dump("--format", "json", "--files", names).objects

    index, times = f"{path}.index", f"{path}.timeindex"
    assert [
        {"type": "offsetEntry", "file": index, "offset": 3, "position": 0},
        {"type": "timeEntry", "file": times, "timestamp": 6, "offset": 0},
        {"type": "timeEntry", "file": times, "timestamp": 4, "offset": 3},
        {"type": "indexMismatch", "file": index, "indexOffset": 3, "logOffset": 0},
        {"type": "timestampMismatch", "file": times, "indexTimestamp": 6, "logTimestamp": 5},
        {"type": "offsetNotFound", "file": times, "indexOffset": 3, "logOffset": -1},
    ] == told


def test_json_of_transaction_indexes_snapshots_and_malformed_files(tmp_path: Path) -> None:
    txns = tmp_path / "0.txnindex"
    txns.write_bytes(struct.pack(">hqqqq", 0, 4000, 12, 30, 31))
    snapshot = tmp_path / "1.snapshot"
    snapshot.write_bytes(bytes.fromhex("0001 48674bc7 00000000"))
    torn = tmp_path / "2.snapshot"
    torn.write_bytes(b"")
    log = tmp_path / "3.log"
    log.write_bytes(b"x")
    bootstrap = tmp_path / "bootstrap.checkpoint"
    bootstrap.write_bytes(b"")
    (tmp_path / "4.log").write_bytes(b"")
    empty = tmp_path / "4.index"
    empty.write_bytes(b"")
    names = (txns, snapshot, torn, log, bootstrap, empty, "what")

    failed = "Snapshot failed schema validation"

    told = dump("--format", "json", "--files", ",".join(map(str, names))).objects

    assert [
        {
            "type": "abortedTxn",
            "file": str(txns),
            "version": 0,
            "producerId": 4000,
            "firstOffset": 12,
            "lastOffset": 30,
            "lastStableOffset": 31,
        },
        {"type": "corruptSnapshot", "file": str(torn), "reason": f"{failed}: null"},
        {"type": "log", "file": str(log), "startOffset": 3},
        {"type": "invalidBytes", "file": str(log), "count": 1},
        {"type": "bootstrapSnapshot", "file": str(bootstrap)},
        {"type": "emptyIndex", "file": str(empty)},
        {"type": "unknownFile", "file": "what"},
    ] == told


def test_json_object_types_are_all_documented() -> None:
    source = Path(dump.__code__.co_filename).parents[2] / "storage/barnabas/storage/dump"
    told = re.compile(r'\btell\(\s*"(\w+)"')
    written = {kind for file in source.glob("*.py") for kind in told.findall(file.read_text())}
    written |= set(KINDS)

    page = PAGE.read_text()

    assert written == set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
