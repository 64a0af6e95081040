from __future__ import annotations

from pathlib import Path

import pytest
from crc32c import crc32c

from barnabas.protocol.records.batch import ATTRIBUTES_AT, CRC_AT, build_batch_with_offsets
from barnabas.protocol.records.control import ControlRecordType, control_key
from barnabas.protocol.records.record import Record
from barnabas.storage.verify.metadata_snapshots import check_metadata_snapshot
from barnabas.storage.verify.report import FileReport, Violation
from barnabas.testing.disks.memory import MemoryFiles

PATH = Path("/data/__cluster_metadata-0") / f"{47:020d}-{3:010d}.checkpoint"
EPOCH = 3


def frame(offset: int, kind: ControlRecordType, *, epoch: int = EPOCH) -> bytearray:
    data = build_batch_with_offsets(
        [Record(offset, 0, control_key(kind), b"\0\0")],
        base_offset=offset,
        partition_leader_epoch=epoch,
    )
    data[22] |= 0x20
    data[CRC_AT:ATTRIBUTES_AT] = crc32c(data[ATTRIBUTES_AT:]).to_bytes(4, "big")
    return data


def records(offset: int, count: int = 2) -> bytearray:
    return build_batch_with_offsets(
        [Record(at, 0, None, b"v") for at in range(offset, offset + count)],
        base_offset=offset,
        partition_leader_epoch=EPOCH,
    )


HEADER = frame(0, ControlRecordType.SNAPSHOT_HEADER)
FOOTER = frame(3, ControlRecordType.SNAPSHOT_FOOTER)


def rules(*batches: bytes | bytearray) -> list[str]:
    files = MemoryFiles()
    files.make_directory(PATH.parent)
    file = files.open(PATH)
    for batch in batches:
        file.append(batch)
    found: list[Violation] = []
    check_metadata_snapshot(files, FileReport(found.append, PATH), EPOCH)
    return [each.rule for each in found]


def damaged() -> bytearray:
    data = records(1)
    data[-1] ^= 1
    return data


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([HEADER, records(1), FOOTER], []),
        ([], ["metadata-snapshot"]),
        ([HEADER, records(1)], ["metadata-snapshot"]),
        ([records(0), frame(2, ControlRecordType.SNAPSHOT_FOOTER)], ["metadata-snapshot"]),
        ([HEADER, records(2), FOOTER], ["metadata-snapshot"]),
        (
            [HEADER, records(1), frame(3, ControlRecordType.SNAPSHOT_FOOTER, epoch=2)],
            ["metadata-snapshot"],
        ),
        ([HEADER, records(1), FOOTER, b"\0" * 5], ["metadata-snapshot"]),
        ([HEADER, records(1), FOOTER[:-4]], ["metadata-snapshot"]),
        ([HEADER, damaged(), FOOTER], ["batch-crc"]),
        ([HEADER, b"\0" * 30], ["batch-size"]),
    ],
)
def test_malformed_metadata_snapshot_is_found(batches: list[bytes], expected: list[str]) -> None:
    assert expected == rules(*batches)


def test_metadata_snapshot_deleted_meanwhile_is_not_reported() -> None:
    found: list[Violation] = []
    check_metadata_snapshot(MemoryFiles(), FileReport(found.append, PATH), EPOCH)
    assert [] == found
