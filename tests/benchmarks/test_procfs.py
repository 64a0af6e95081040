"""
What processes use, and whether a machine is quiet.
"""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from benchmarks.procfs import busy_cores

_ROOT = Path(__file__).parents[2]


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


_A_PROCESS_WHOSE_PARENT_ENDS = """
import os, time
from benchmarks.procfs import adopt_orphans, tree_seconds

adopt_orphans()
ended, at_end = os.pipe()
before = tree_seconds(os.getpid())
parent = os.fork()
if parent == 0:
    if os.fork() == 0:
        while time.process_time() < 0.3:
            pass
    os._exit(0)
os.close(at_end)
os.waitpid(parent, 0)
os.read(ended, 1)
print(tree_seconds(os.getpid()) - before)
"""


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="only Linux tells")
def test_what_orphans_have_used_is_not_lost() -> None:
    """
    The kernel adds what a process has used to its parent, if that waits for it.
    """
    script = [sys.executable, "-c", _A_PROCESS_WHOSE_PARENT_ENDS]

    run = subprocess.run(script, cwd=_ROOT, capture_output=True, check=True, timeout=60)
    used = float(run.stdout)

    assert used >= 0.29
