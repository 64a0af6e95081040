from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.programs import Program, compiler

pytestmark = pytest.mark.skipif(
    compiler() is None, reason="no C compiler, and these are C programs"
)


class Ended(Exception):
    pass


@pytest.fixture
def program(tmp_path: Path) -> Program:
    endless = Program("exchange", tmp_path)
    endless._path = Path("/bin/cat")
    return endless


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[str]]]:
    """
    Processes that were started just before this one is asked to end.
    """
    processes = []
    start = subprocess.Popen

    def end(*_: object) -> None:
        raise Ended

    def popen(*args: Any, **options: Any) -> subprocess.Popen[str]:
        process: subprocess.Popen[str] = start(*args, **options)
        processes.append(process)
        os.kill(os.getpid(), signal.SIGTERM)
        return process

    before = signal.signal(signal.SIGTERM, end)
    monkeypatch.setattr(subprocess, "Popen", popen)
    yield processes
    signal.signal(signal.SIGTERM, before)
    for process in processes:
        process.kill()
        process.wait()


def test_program_that_is_still_starting_ends_with_the_run(
    program: Program, started: list[subprocess.Popen[str]]
) -> None:
    with pytest.raises(Ended), program.running("/dev/zero"):
        pytest.fail("it was ended before")

    assert [-signal.SIGKILL] == [process.poll() for process in started]
