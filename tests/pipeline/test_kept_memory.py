from __future__ import annotations

import platform
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from barnabas.pipeline.rows import scan
from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.record import SimpleRecord
from tests.support.log_directory import WrittenDirectory, append
from tests.support.segments import FIRST_TIMESTAMP

MB = 1_000_000


def write(path: Path, codec: CompressionType = CompressionType.NONE) -> Path:
    chance = random.Random(1)
    directory = WrittenDirectory(path)
    log = directory.log()
    for start in range(0, 20_000, 100):
        values = [chance.randbytes(1000) for _ in range(100)]
        records = [SimpleRecord(FIRST_TIMESTAMP + start, None, value) for value in values]
        append(log, records, compression=codec)
    directory.stop()
    return path


def test_one_decompressed_chunk_is_held_at_a_time(tmp_path: Path) -> None:
    path, options = str(write(tmp_path)), {"chunkBytes": str(4 * MB)}
    for _ in scan(path, options):
        pass
    tracemalloc.start()
    try:
        for _ in scan(path, options):
            pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert 4 * MB < peak < 6 * MB


FAULTS = """
import resource, sys
from barnabas.pipeline.rows import scan

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in scan(sys.argv[1], {"chunkBytes": "2000000"}):
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library has other rules")
def test_chunks_reuse_memory_pages(tmp_path: Path) -> None:
    """
    20 MB of decompressed data would need 5,000 new pages.
    """
    path = write(tmp_path, CompressionType.LZ4)

    done = subprocess.run(
        [sys.executable, "-c", FAULTS, str(path)], capture_output=True, text=True, check=True
    )

    assert int(done.stdout) < 2500
