"""
Running tests against a mutation, in a process with limits.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.mutations.drawing import ROOT
from tests.mutations.mutation import Mutation
from tests.mutations.overlay import Overlay
from tests.mutations.selection import FAILURE, VARIABLE

KILLED: Final = "killed"
SURVIVED: Final = "survived"
TIMEOUT: Final = "timeout"
UNREACHED: Final = "unreached"
"""No test executes the mutated lines, or none of those that did still exists."""

_GIB: Final = 1 << 30
MEMORY_LIMIT: Final = {"pipeline": 24 * _GIB}
USUAL_MEMORY_LIMIT: Final = 6 * _GIB
FILE_LIMIT: Final = 2 * _GIB

_NO_TESTS: Final = 5
"""pytest's exit code when no test is selected."""

_TIMED_OUT: Final = "Timeout ("
"""The beginning of pytest-timeout's message."""

_TEST_SECONDS: Final = 20.0
_START_SECONDS: Final = 60.0
_SLOWNESS: Final = 4
"""How many times as long as in the recorded run tests may take, besides the seconds above."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    Attributes:
        test: the one that failed, or a word about the end of the process.
    """

    status: str
    test: str
    seconds: float


class Runner:
    """
    Attributes:
        overlay: with which all runs take place.
    """

    def __init__(self, folder: Path) -> None:
        self.overlay = Overlay(folder / "overlay")
        self._folder = folder

    def run(
        self,
        mutation: Mutation | None,
        tests: Sequence[str],
        *,
        expected_seconds: float,
        memory_limit: int = USUAL_MEMORY_LIMIT,
    ) -> Outcome:
        """
        Run *tests* in their order up to the first that fails.

        Args:
            mutation: None runs the product as it is.
            expected_seconds: the time of all tests in the recorded run.
        """
        start = time.monotonic()
        slow = _SLOWNESS * expected_seconds
        with TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as name:
            folder = Path(name)
            (folder / "tests.json").write_text(json.dumps(tests))
            held = (
                nullcontext()
                if mutation is None
                else self.overlay.holding(mutation.path, mutation.apply)
            )
            with held:
                code = self._pytest(folder, tests, slow, memory_limit)
            failure = folder / FAILURE
            found = json.loads(failure.read_text()) if failure.exists() else None
        status, test = _judge(code, found)
        return Outcome(status, test, round(time.monotonic() - start, 2))

    def _pytest(
        self, folder: Path, tests: Sequence[str], slow: float, memory_limit: int
    ) -> int | None:
        """
        Return the exit code, or None if the process was stopped.
        """
        (folder / "tmp").mkdir()
        environment = os.environ | {
            "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis"),
            "PYTHONPATH": self.overlay.python_path,
            "TMPDIR": str(folder / "tmp"),
            VARIABLE: str(folder / "tests.json"),
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "tests.mutations.selection"]
        limits = ["-o", f"timeout={_TEST_SECONDS + slow}", "--basetemp", str(folder / "basetemp")]

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (memory_limit, memory_limit))
            resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT, FILE_LIMIT))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *limits, *files],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=limit,  # noqa: PLW1509  # This program has one thread.
            start_new_session=True,
        )
        try:
            return process.wait(_START_SECONDS + slow)
        except subprocess.TimeoutExpired:
            return None
        finally:
            # Brokers that a test has started are in the same group.
            _kill_group(process.pid)
            process.wait()


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _judge(code: int | None, failure: dict[str, str] | None) -> tuple[str, str]:
    if failure is not None:
        is_late = failure["text"].rpartition("\n")[2].find(_TIMED_OUT) >= 0
        return (TIMEOUT if is_late else KILLED), failure["test"]
    if code is None:
        return TIMEOUT, ""
    if code == _NO_TESTS:
        return UNREACHED, ""
    return (SURVIVED, "") if code == 0 else (KILLED, f"the process ended with {code}")
