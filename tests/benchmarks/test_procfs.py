"""
Whether a machine is quiet.
"""

import threading
from pathlib import Path

import pytest

from benchmarks.procfs import busy_cores


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="only Linux tells")
def test_a_core_that_works_is_busy() -> None:
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
