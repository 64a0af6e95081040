import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.some import some

pytestmark = pytest.mark.skipif(not Path("/proc/stat").exists(), reason="only Linux tells")

_ROOT = Path(__file__).parents[2]

_BEGIN = """
import os, signal, sys, time
from benchmarks.process_tree import ProcessTree
from benchmarks.procfs import adopt_orphans

def work(cpu_s=0.3):
    until = time.process_time() + cpu_s
    while time.process_time() < until:
        pass

def child(main):
    pid = os.fork()
    if pid == 0:
        main()
        os._exit(0)
    return pid

def worker():
    work()
    os.write(is_done, b".")
    os.read(may_end, 1)

def read_twice():
    print(tree.seconds() - before, tree.seconds() - before)

adopt_orphans()
done, is_done = os.pipe()
may_end, end = os.pipe()
tree = ProcessTree(os.getpid())
before = tree.seconds()
"""


def used(script: str) -> list[float]:
    run = subprocess.run(
        [sys.executable, "-c", _BEGIN + script],
        cwd=_ROOT,
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    )
    return [float(word) for word in run.stdout.split()]


_IGNORE = "signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
_RUNNING_AND_REAPED = """
waited_for = child(work)
os.waitpid(waited_for, 0)
child(worker)
os.read(done, 1)
read_twice()
os.write(end, b".")
"""
_UNREAPED = """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
pid = child(worker)
os.read(done, 1)
read_twice()
os.write(end, b".")
while os.path.exists(f"/proc/{pid}"):
    time.sleep(0.01)
read_twice()
"""
_REAPED = """
pid = child(worker)
os.read(done, 1)
read_twice()
os.write(end, b".")
read_twice()
os.waitpid(pid, 0)
read_twice()
"""
_DAEMON = """
def daemon():
    {ignore}
    work()
    child(worker)
    os.read(may_end, 1)
    try:
        os.wait()
    except ChildProcessError:
        pass  # They have ended, but there was nothing to wait for.

pid = child(daemon)
os.read(done, 1)
read_twice()
os.write(end, b"..")
os.waitpid(pid, 0)
read_twice()
"""
_ORPHAN = """
def parent():
    child(worker)
    os.read(may_end, 1)

pid = child(parent)
os.read(done, 1)
read_twice()
os.write(end, b".")
os.waitpid(pid, 0)
read_twice()
os.write(end, b".")
time.sleep(0.1)
read_twice()
"""


@pytest.mark.parametrize(
    ("script", "works"),
    [
        pytest.param(_RUNNING_AND_REAPED, 2, id="running children and reaped ones"),
        # PySpark's daemon does not reap its workers.
        pytest.param(_UNREAPED, 1, id="never reaped"),
        pytest.param(_REAPED, 1, id="seen and later reaped"),
        # The daemon is reaped, and its worker only by a daemon that waits for it.
        pytest.param(_DAEMON.format(ignore=_IGNORE), 2, id="daemon that does not wait"),
        pytest.param(_DAEMON.format(ignore=""), 2, id="daemon that waits"),
        # It moves to its new parent, with its usage.
        pytest.param(_ORPHAN, 1, id="orphan"),
    ],
)
def test_process_counts_once_however_it_ends(script: str, works: int) -> None:
    readings = used(script)

    assert sorted(readings) == readings
    least = 0.3 * works - 0.02
    assert all(least <= seconds < least + 0.32 for seconds in some(readings))


def test_excluded_process_counts_neither_itself_nor_its_descendants() -> None:
    readings = used("""
def parent():
    child(worker)
    worker()

pid = child(parent)
os.read(done, 1)
os.read(done, 1)
tree = ProcessTree(os.getpid(), without=[pid])
before = 0
print(tree.seconds() - time.process_time())
os.write(end, b"..")
""")

    assert all(abs(seconds) < 0.1 for seconds in some(readings))
