from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from barnabas.pipeline.decoding.batch_headers import joined
from barnabas.pipeline.logs import headers as header_scan
from barnabas.pipeline.logs.chunks import SegmentScan
from barnabas.pipeline.logs.headers import HeaderScan
from barnabas.protocol.records.batch import HEADER_SIZE, build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.testing.disks.memory import MemoryFiles

PATH = Path("/data/t-0/0.log")


class CountingFile:
    def __init__(self, data: bytes) -> None:
        files = MemoryFiles(lambda: 0)
        files.make_directory(PATH.parent)
        self._file = files.open(PATH)
        self._file.append(data)
        self.bytes_read = self.reads = 0

    def read(self, position: int, size: int, *, nowait: bool = False) -> Any:
        data = self._file.read(position, size)
        self.reads += 1
        self.bytes_read += len(data)
        return data


def batches(sizes: list[int]) -> bytes:
    made = b""
    for offset, size in enumerate(sizes):
        batch = bytearray(build_batch([SimpleRecord(1, None, bytes(size))]))
        batch[:8] = offset.to_bytes(8, "big")
        made += batch
    return made


def both_ways(data: bytes, end: int, *, is_local: bool) -> tuple[Any, Any, CountingFile]:
    file: Any = CountingFile(data)
    scan = HeaderScan(file, 0, end, is_local=is_local)
    found = [*scan]
    other: Any = CountingFile(data)
    whole = SegmentScan(other, 0, end, 1 << 30)
    expected = [chunk.headers for chunk in whole]
    return (
        (joined(found).tolist() if found else [], scan.stop),
        (joined(expected).tolist() if expected else [], whole.stop),
        file,
    )


@pytest.mark.parametrize("is_local", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_headers_are_found_in_batches_of_any_size_and_order(
    monkeypatch: pytest.MonkeyPatch, seed: int, is_local: bool
) -> None:
    monkeypatch.setattr(header_scan, "_TOGETHER", 7)
    chance = random.Random(seed)
    sizes = [chance.choice((0, 10, 5000, 9000, 100_000)) for _ in range(40)]
    data = batches(sizes)

    found, expected, _ = both_ways(data, len(data), is_local=is_local)

    assert (expected, 40) == (found, len(found[0]))


@pytest.mark.parametrize("is_local", [True, False])
@pytest.mark.parametrize("size", [10, 20_000])
def test_malformed_batch_ends_the_header_scan(size: int, is_local: bool) -> None:
    """
    Both scans report the same place and reason: a torn batch, zeros, an old format or random bytes.
    """
    data = batches([size] * 3)
    one = len(data) // 3
    for cut in (1, 11, 12, 60, HEADER_SIZE, one - 1):
        found, expected, _ = both_ways(data[: 2 * one + cut], 2 * one + cut, is_local=is_local)
        assert expected == found
        assert 2 == len(found[0])
    for place, byte in ((16, 0), (16, 1), (16, 9), (8, 255)):
        broken = bytearray(data)
        broken[one + place] = byte
        found, expected, _ = both_ways(bytes(broken), len(data), is_local=is_local)
        assert expected == found
        assert found[1] is not None
    found, expected, _ = both_ways(data + bytes(1000), len(data) + 1000, is_local=is_local)
    assert expected == found
    assert "there are zeros instead of a batch" == found[1].reason


def test_only_headers_of_large_batches_are_read() -> None:
    data = batches([50_000] * 200)

    _, _, local = both_ways(data, len(data), is_local=True)
    _, _, remote = both_ways(data, len(data), is_local=False)

    assert local.bytes_read < len(data) // 50
    assert remote.reads < 20
    small = batches([10] * 5000)
    found, _, local = both_ways(small, len(small), is_local=True)
    assert 5000 == len(found[0])
    assert local.reads <= 2 + len(small) // (64 << 10)
    assert np.all(np.diff([header[0] for header in found[0]]) > 0)
