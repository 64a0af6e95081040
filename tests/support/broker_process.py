"""
A broker as a process, on a free port and with a directory of its own.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final, Self

from tests.support.undisturbed import undisturbed

LONGEST_LIFE = 3600
"""
Seconds after which the kernel ends a broker whose test run was itself killed.
"""

_PORTS = range(20_000, 32_000)

_BOUNDED = (
    "import os, signal, sys; signal.alarm(int(sys.argv[1])); os.execvp(sys.argv[2], sys.argv[2:])"
)
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)


def free_port() -> int:
    """
    A TCP port of the loopback interface that nobody listens on now.

    It is none of those that the system gives to outgoing connections, none that was returned
    before, and none of another process of the same test run: each of them may be without a listener
    now, because its broker is being started, or started again.
    """
    for port in islice(_ports, 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("100 ports in a row are taken")


def _ports_of_this_process() -> Iterator[int]:
    """
    The ports of this process, cyclically, from a random one on.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    mine = _PORTS[worker % workers :: workers]
    return islice(cycle(mine), random.SystemRandom().randrange(len(mine)), None)


_ports: Final = _ports_of_this_process()


def wait_for(condition: Callable[[], bool], what: str, seconds: float) -> None:
    """
    Wait until *condition* holds.

    Raises:
        TimeoutError: it did not within *seconds*; the message names *what*.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.005)


def answers(port: int, seconds: float = 2.0) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
            connection.sendall(_API_VERSIONS)
            return len(connection.recv(8)) > 0
    except OSError:
        return False


class BrokerProcess:
    """
    Starts, stops, kills and restarts one broker on one directory and one port.

    1. Both stay the same over restarts, so that clients and data meet again.
    2. Nothing outlives the test run: ``close`` kills what still runs, and a *bounded* process is
       ended by an alarm of the kernel that survives even the death of the test run.
    """

    name = "broker"
    start_timeout = 60.0

    def __init__(
        self,
        directory: Path,
        *,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        secured: Sequence[str] = (),
        bounded: bool = True,
    ) -> None:
        """
        Args:
            secured: security protocols that it has a listener for beside the plain one, each on a
                port of ``ports``.
        """
        self.directory = directory
        self.ports = {protocol: free_port() for protocol in secured}
        self.settings = dict(settings or {})
        self.environment = dict(environment or {})
        self.data = directory / "data"
        self.port = port if port is not None else free_port()
        self.bounded = bounded
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def listeners(self) -> str:
        ports = {"PLAINTEXT": self.port, **self.ports}
        return ",".join(f"{protocol}://127.0.0.1:{port}" for protocol, port in ports.items())

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} does not run"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def was_killed(self) -> bool:
        return self._process is not None and self._process.poll() == -signal.SIGKILL

    def command(self) -> Sequence[str]:
        raise AssertionError("each kind of broker says how it is run")

    def prepare(self) -> None:
        """
        What has to be done before the process is started.
        """

    def is_ready(self) -> bool:
        return answers(self.port)

    def launch(self) -> None:
        assert not self.is_running, f"{self.name} runs already"
        self.directory.mkdir(parents=True, exist_ok=True)
        self.prepare()
        command = list(self.command())
        if self.bounded:
            command = [sys.executable, "-I", "-S", "-c", _BOUNDED, str(LONGEST_LIFE), *command]
        with self.log_path.open("ab") as log, undisturbed():
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                env=os.environ | self.environment,
            )

    def start(self) -> None:
        self.launch()
        wait_for(self._ready_or_dead, f"{self.name} to be ready", self.start_timeout)
        if not self.is_running:
            raise AssertionError(f"{self.name} ended at once:\n{self.log_text()[-4000:]}")

    def _ready_or_dead(self) -> bool:
        return not self.is_running or self.is_ready()

    def stop(self, seconds: float = 240.0) -> int:
        assert self._process is not None, f"{self.name} does not run"
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(seconds)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        self.kill()

    def __enter__(self) -> Self:
        """
        Start the process. At the end of the block, or if it does not start, close it and print the
        end of its log to stderr.
        """
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        print(self.log_text()[-8000:], file=sys.stderr)

    @property
    def log_path(self) -> Path:
        return self.directory / "server.log"

    def log_text(self) -> str:
        return self._log_bytes().decode(errors="replace")

    def log_since_start(self) -> str:
        return self._log_bytes()[self._log_start :].decode(errors="replace")

    def _log_bytes(self) -> bytes:
        return self.log_path.read_bytes() if self.log_path.exists() else b""


class Barnabas(BrokerProcess):
    name = "Barnabas"

    def __init__(self, directory: Path, *, ephemeral: bool = False, **options: Any) -> None:
        super().__init__(directory, **options)
        self.ephemeral = ephemeral

    def command(self) -> list[str]:
        settings = {"listeners": self.listeners, **self.settings}
        assignments = [
            part for name, value in settings.items() for part in ("--set", f"{name}={value}")
        ]
        place: tuple[str, ...] = (
            ("--ephemeral",) if self.ephemeral else ("--data-dir", str(self.data))
        )
        if "log.dirs" in settings:
            place = ()
        return [sys.executable, "-m", "barnabas.server", "serve", *place, *assignments]


def resident_bytes(pid: int) -> int:
    """
    The resident memory of the process (Linux).
    """
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pid: int) -> float:
    """
    The processor time of the process so far, user and system (Linux).
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
