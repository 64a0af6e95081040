"""
The rules of what a clean stop leaves in the files.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from barnabas.storage.fs.disk import DiskFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.checkers.stored import Stored
from tests.support.server import DATA, batch, produce_request, running

LOG = DATA / "orders-0"
FIRST = "00000000000000000000"


async def written(files: MemoryFiles) -> None:
    async with running(files, log_index_interval_bytes="1") as broker:
        await broker.create("orders")
        async with await broker.client() as client:
            for value in ("one", "two", "three", "four"):
                await client.ask(produce_request("orders", batch(value)), 9)


def findings(files: MemoryFiles) -> list[str]:
    found: list[str] = []
    Stored(found.append, files).check(LOG)
    return found


async def test_log_of_a_broker_that_stopped_is_in_order() -> None:
    files = MemoryFiles()
    await written(files)

    assert [] == findings(files)
    assert len(files.nodes[LOG / f"{FIRST}.index"].data) >= 16


@pytest.mark.parametrize(
    ("suffix", "position", "data", "finding"),
    [
        ("index", 4, struct.pack(">i", 5), "points at 5, where no batch starts"),
        ("index", 0, struct.pack(">i", 0), "points at the batch of offset 1"),
        ("index", 0, struct.pack(">i", 99), "the segment ends at 3"),
        ("timeindex", 8, struct.pack(">i", 99), "names offset 99, the segment ends at 3"),
        ("log", 8, struct.pack(">i", 1 << 20), "no whole batch at 0"),
        ("log", 7, b"\x09", "follows 9"),
    ],
)
async def test_changed_byte_is_found(suffix: str, position: int, data: bytes, finding: str) -> None:
    files = MemoryFiles()
    await written(files)
    content = files.nodes[LOG / f"{FIRST}.{suffix}"].data

    content[position : position + len(data)] = data

    assert finding in "\n".join(findings(files))


async def test_files_on_a_disk_are_checked_as_those_in_memory(tmp_path: Path) -> None:
    files = MemoryFiles()
    await written(files)
    for path, node in files.nodes.items():
        if path.parent == LOG:
            (tmp_path / path.name).write_bytes(node.data)
    (tmp_path / f"{FIRST}.index").write_bytes(struct.pack(">ii", 1, 5))
    found: list[str] = []

    Stored(found.append, DiskFiles()).check(tmp_path)

    assert 1 == len(found)
