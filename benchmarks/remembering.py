"""
A broker that has all answers at hand: the program ``remember.c`` before Barnabas.
"""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks.measure import Unavailable
from benchmarks.programs import Program
from tests.support.broker_process import Barnabas, free_port


class Remembering:
    """
    What a client gets from it the second time costs nobody but the system anything. That is no
    bound: a broker that sends less at once may leave more in the processor's cache for the client.
    It holds all that was fetched, in memory.
    """

    name: Final = "answers at hand"

    def __init__(self, directory: Path) -> None:
        port = free_port()
        self.bootstrap = f"127.0.0.1:{port}"
        self._port = port
        self._directory = directory
        self._behind = Barnabas(
            directory / "behind",
            settings={
                "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
                "max.incremental.fetch.session.cache.slots": "0",
            },
            bounded=False,
        )
        self._running = ExitStack()
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """
        Return when clients may come.

        Raises:
            Unavailable: there is no C compiler.
        """
        self._running.callback(self._behind.close)
        self._behind.start()
        program = Program("remember", self._directory)
        arguments = (f"port={self._port}", f"broker={self._behind.port}")
        self._process = process = self._running.enter_context(program.started(*arguments))
        assert process.stdout is not None, "it was asked for"
        if not process.stdout.readline():
            raise Unavailable("the program has ended")

    @property
    def pid(self) -> int:
        """
        Of the program.
        """
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def pid_behind(self) -> int:
        """
        Of the broker that is asked the first time.
        """
        return self._behind.pid

    def close(self) -> None:
        """
        End both.
        """
        self._running.close()
