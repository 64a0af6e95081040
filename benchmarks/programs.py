"""
The C programs beside this file: compiled for one run, and never left running.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.measure import Unavailable
from tests.support.undisturbed import undisturbed

HERE: Final = Path(__file__).parent
LONGEST: Final = 300.0
"""
Seconds after which a program is ended that should have ended by itself.
"""


def compiler() -> str | None:
    """
    The command of a C compiler, if there is one.
    """
    return os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc")


class Program:
    """
    A program made of ``name.c``, in *directory*; if there is no compiler it cannot be run.
    """

    def __init__(self, name: str, directory: Path, link: Sequence[str] = ()) -> None:
        self._path: Path | None = None
        command = compiler()
        if command is not None:
            self._path = directory / name
            source = str(HERE / f"{name}.c")
            compile_it = [command, "-O2", "-o", str(self._path), source, *link]
            subprocess.run(compile_it, check=True)

    def output(self, *arguments: str) -> str:
        """
        Run it to its end; what it printed.

        Raises:
            Unavailable: there is no compiler.
            SubprocessError: it failed, or took too long.
        """
        with self.running(*arguments) as result:
            return result()

    @contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """
        Run it beside the body, with which it ends at the latest.

        Raises:
            Unavailable: there is no compiler.
        """
        if self._path is None:
            raise Unavailable("no C compiler")
        with _started([str(self._path), *arguments]) as process:
            yield process

    @contextmanager
    def running(self, *arguments: str) -> Iterator[Callable[[], str]]:
        """
        The same with a program that ends by itself. The function waits for its end and gives what
        it printed.

        Raises: as ``output``.
        """
        with self.started(*arguments) as process:

            def result() -> str:
                printed, _ = process.communicate(timeout=LONGEST)
                if process.returncode != 0:
                    raise subprocess.CalledProcessError(process.returncode, process.args)
                return printed

            yield result


@contextmanager
def _started(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    process: subprocess.Popen[str] | None = None
    try:
        with undisturbed():
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        yield process
    finally:
        if process is not None:
            with process:
                process.kill()
