from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from barnabas.storage.fs.disk_lock import DiskLock

LIKE_JAVA = """
import fcntl, sys
file = open(sys.argv[1], "r+")  # RandomAccessFile, then FileChannel.tryLock
print("opened", flush=True)
sys.stdin.readline()
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("locked", flush=True)
sys.stdin.readline()
"""


def test_broker_that_has_opened_the_file_before_a_release_excludes_all_others(
    tmp_path: Path,
) -> None:
    path = tmp_path / ".lock"
    lock = DiskLock.acquire(path)
    assert lock is not None
    with subprocess.Popen(
        [sys.executable, "-c", LIKE_JAVA, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        try:
            assert "opened\n" == other.stdout.readline()
            lock.release()
            other.stdin.write("\n")
            assert "locked\n" == other.stdout.readline()

            assert DiskLock.acquire(path) is None
            assert other.pid == DiskLock.holder(path)
        finally:
            other.kill()
    again = DiskLock.acquire(path)
    assert again is not None
    assert os.getpid() == DiskLock.holder(path)
    again.release()
    assert DiskLock.holder(path) is None


def test_time_of_the_file_is_that_of_the_last_lock(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    path.touch()
    os.utime(path, ns=(0, 0))
    lock = DiskLock.acquire(path)
    assert lock is not None
    taken_ns = path.stat().st_mtime_ns
    lock.release()

    assert 0 < taken_ns == path.stat().st_mtime_ns
