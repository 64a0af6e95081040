import os
import threading
import time
from pathlib import Path

import pytest

from benchmarks.procfs import busy_cores, cpu_seconds, user_seconds

ONLY_LINUX = pytest.mark.skipif(not Path("/proc/stat").exists(), reason="only Linux tells")


@ONLY_LINUX
def test_core_that_works_counts_as_busy() -> None:
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            sum(range(10_000))

    worker = threading.Thread(target=work)
    worker.start()
    try:
        busy = busy_cores(0.5)
    finally:
        done.set()
        worker.join()

    assert busy > 0.1


@ONLY_LINUX
def test_system_time_is_not_counted_as_own_code() -> None:
    """
    Writing zeros is system work, computing sums our own.
    """
    pid = os.getpid()
    before = user_seconds(pid)
    until = cpu_seconds(pid) + 0.3
    room = bytearray(1 << 20)
    with open("/dev/zero", "rb", buffering=0) as zeros:
        while cpu_seconds(pid) < until:
            for _ in range(20):
                zeros.readinto(room)
    of_the_system = user_seconds(pid) - before

    before = user_seconds(pid)
    until = time.thread_time() + 0.3
    while time.thread_time() < until:
        sum(range(100_000))
    of_our_own = user_seconds(pid) - before

    assert of_the_system < of_our_own / 2
