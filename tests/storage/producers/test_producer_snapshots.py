from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.errors import CorruptSnapshot
from barnabas.storage.producers.entry import ProducerStateEntry
from barnabas.storage.producers.snapshots import (
    SnapshotFile,
    decode_snapshot,
    encode_snapshot,
    list_snapshot_files,
    read_snapshot,
    write_snapshot,
)
from barnabas.testing.disks.crashable import CrashableFiles
from barnabas.testing.disks.memory import MemoryFiles

DIRECTORY = Path("/data/t-0")
PATH = DIRECTORY / "00000000000000000042.snapshot"

# What Apache Kafka writes for an empty log, and for the two producers below.
EMPTY = bytes.fromhex("0001 48674bc7 00000000")
TWO = bytes.fromhex(
    "0001 b206985f 00000002"
    "0000000000000fa0 0003 00000007 0000000000000014 00000002 0000018bcfe56800 00000009"
    "000000000000000c"
    "0000000000000fa1 0000 ffffffff ffffffffffffffff 00000000 0000018bcfe56801 ffffffff"
    "ffffffffffffffff"
)


def two_producers() -> list[ProducerStateEntry]:
    first = ProducerStateEntry(4000, 3, 9, 1700000000000, 12)
    first.add_batch(3, 7, 20, 2, timestamp=1700000000000)
    return [first, ProducerStateEntry(4001, 0, -1, 1700000000001)]


@pytest.fixture
def files() -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    return files


@pytest.mark.scenario(47)
def test_producer_snapshot_has_kafkas_bytes() -> None:
    assert TWO == encode_snapshot(two_producers())
    assert EMPTY == encode_snapshot([])


@pytest.mark.scenario(47)
def test_producer_snapshot_survives_a_round_trip() -> None:
    assert list(map(repr, two_producers())) == list(map(repr, decode_snapshot(TWO)))
    assert [] == decode_snapshot(EMPTY)


@pytest.mark.scenario(47)
@pytest.mark.parametrize("position", range(len(TWO)))
def test_flipped_bit_anywhere_in_a_snapshot_is_detected(position: int) -> None:
    data = bytearray(TWO)
    data[position] ^= 1

    with pytest.raises(CorruptSnapshot):
        decode_snapshot(bytes(data))


@pytest.mark.parametrize("size", range(len(TWO)))
def test_snapshot_truncated_anywhere_is_detected(size: int) -> None:
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(TWO[:size])


@given(st.binary(max_size=120))
def test_other_bytes_are_not_a_snapshot(data: bytes) -> None:
    if data != EMPTY:
        with pytest.raises(CorruptSnapshot):
            decode_snapshot(data)


def test_longer_snapshot_file_is_replaced_completely(files: MemoryFiles) -> None:
    write_snapshot(files, PATH, two_producers(), sync=False)
    write_snapshot(files, PATH, [], sync=False)

    assert EMPTY == files.read_bytes(PATH)


@pytest.mark.parametrize("sync", [True, False], ids=["synced", "flushed later"])
def test_synced_snapshot_survives_a_crash(sync: bool) -> None:
    files = CrashableFiles()
    files.make_directory(DIRECTORY)
    write_snapshot(files, PATH, two_producers(), sync=sync)
    if not sync:
        files.sync_directory(DIRECTORY)
        SnapshotFile(files, DIRECTORY, PATH.name).flush()

    files.crash()

    assert 2 == len(read_snapshot(files, PATH))


def test_snapshots_are_found_by_their_file_names(files: MemoryFiles) -> None:
    for name in (
        "00000000000000000007.snapshot",
        "00000000000000000042.snapshot",
        "00000000000000000009.snapshot.deleted",
        "00000000000000000007.log",
        "notes.snapshot",
    ):
        files.open(DIRECTORY / name).close()

    assert [7, 42] == [snapshot.offset for snapshot in list_snapshot_files(files, DIRECTORY)]


def test_snapshot_is_marked_as_deleted_and_then_removed(files: MemoryFiles) -> None:
    missing, snapshot = (SnapshotFile(files, DIRECTORY, PATH.name) for _ in range(2))
    missing.flush()
    assert not missing.rename_to_delete()
    write_snapshot(files, PATH, [], sync=False)

    assert snapshot.rename_to_delete()
    assert [PATH.name + ".deleted"] == files.names(DIRECTORY)
    assert snapshot.delete_if_exists()
    assert not snapshot.delete_if_exists()
