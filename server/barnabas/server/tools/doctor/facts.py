"""
What the system says about itself.
"""

from __future__ import annotations

import os
import shutil
import socket
import statistics
import sys
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.server.config import BrokerConfig, Listener
from barnabas.server.http.address import Address
from barnabas.server.network.acceptor import bind
from barnabas.server.resources.descriptors import (
    descriptor_limit,
    most_connections,
    most_open_files,
)
from barnabas.server.resources.memory import memory_bytes
from barnabas.storage.clock import SystemClock, perf_counter
from barnabas.storage.directories.directory import LOCK_FILE
from barnabas.storage.fs.disk_lock import DiskLock

SYNCS: Final = 5
BLOCK: Final = bytes(4096)
_MOUNTS: Final = Path("/proc/self/mounts")
_ESCAPES: Final = {r"\040": " ", r"\011": "\t", r"\012": "\n", r"\134": "\\"}


class Descriptors(NamedTuple):
    """
    How many file descriptors a process may have, and what a broker makes of them.
    """

    limit: int
    connections: int
    """The most connections at a time."""
    files: int
    """The most open files of logs, while there are few connections."""


class Facts:
    """
    The facts that the checks go by, of this machine.
    """

    def is_compiled(self) -> bool:
        """
        Whether the inner loops are compiled.
        """
        found = find_spec("barnabas.protocol.records.varints")
        return found is not None and not (found.origin or "").endswith(".py")

    def has_module(self, name: str) -> bool:
        return find_spec(name) is not None

    def descriptors(self) -> Descriptors | None:
        """
        The file descriptors of a broker; None if the system has no limit.
        """
        limit, files = descriptor_limit(), most_open_files()
        if limit is None or files is None:
            return None
        return Descriptors(limit, most_connections(), files)

    def address_space_bytes(self) -> int | None:
        """
        The address space that a process may have; None if the system has no limit.
        """
        if sys.platform == "win32":
            return None
        import resource  # noqa: PLC0415  # not every system has it

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        return None if limit == resource.RLIM_INFINITY else limit

    def memory_bytes(self) -> int:
        return memory_bytes()

    def sysctl(self, name: str) -> int | None:
        """
        A number of the kernel, such as ``net.core.rmem_max``; None where there is none.
        """
        with suppress(OSError, ValueError):
            return int(Path("/proc/sys", *name.split(".")).read_text())
        return None

    def now_s(self) -> float:
        return SystemClock().now_ms() / 1000

    # Directories

    def newest_change_s(self, directory: Path) -> float | None:
        """
        When a file directly in *directory* was last changed, in seconds since 1970.
        """
        with suppress(OSError):
            return max((entry.stat().st_mtime for entry in os.scandir(directory)), default=None)
        return None

    def is_locked(self, directory: Path) -> bool:
        """
        Whether a broker runs on *directory*.
        """
        with suppress(OSError):
            return DiskLock.is_held(directory / LOCK_FILE)
        return False

    def may_write(self, directory: Path) -> bool:
        return os.access(directory, os.W_OK | os.X_OK)

    def free_bytes(self, directory: Path) -> int:
        """
        Raises:
            OSError: the system does not say.
        """
        return shutil.disk_usage(directory).free

    def file_system(self, directory: Path) -> str:
        """
        The type of the file system, as Linux names it (``ext4``); empty where it is not known.
        """
        best, kind = -1, ""
        path = directory.resolve()
        with suppress(OSError):
            for line in _MOUNTS.read_text(errors="replace").splitlines():
                _, place, found, *_ = line.split(" ")
                for escape, character in _ESCAPES.items():
                    place = place.replace(escape, character)
                # Of two at the same place the later one lies above.
                if path.is_relative_to(place) and len(place) >= best:
                    best, kind = len(place), found
        return kind

    def sync_s(self, directory: Path) -> float:
        """
        How long an fsync of a block takes in *directory*, in seconds: the middle one of ``SYNCS``.

        Raises:
            OSError: the directory cannot be written to.
        """
        taken = []
        with tempfile.TemporaryFile(dir=directory) as file:
            for _ in range(SYNCS):
                file.write(BLOCK)
                file.flush()
                began = perf_counter()
                os.fsync(file.fileno())
                taken.append(perf_counter() - began)
        return statistics.median(taken)

    # Listeners

    def resolve(self, host: str) -> None:
        """
        Raises:
            OSError: no address belongs to the name *host*.
        """
        socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)

    def bind(self, listener: Listener, config: BrokerConfig) -> None:
        """
        Listen where *listener* does, for a moment.

        Raises:
            OSError: that cannot be done.
        """
        bind(listener, config).close()

    def bind_http(self, address: Address) -> None:
        """
        Listen on *address* for a moment.

        Raises:
            OSError: that cannot be done.
        """
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        socket.create_server(address, family=family).close()
