"""
Forked children let go of the brokers of their parent.

A child of ``os.fork``, and of ``multiprocessing`` where that forks, has a copy of each descriptor.
After the parent has closed its own, a copy keeps a port taken, a connection open, or the separate
process of a broker alive. So a child replaces its copies by ``/dev/null`` at once. It does not
close them: the numbers stay in use, and an object of the parent's broker that is collected later
closes no file of the child.
"""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Final, Protocol
from weakref import WeakSet

from barnabas.testing.errors import NotRunning

_MOST_DESCRIPTORS: Final = 65_536
"""
Where the system does not list those of a process.
"""


class Inherited(Protocol):
    """
    A broker of this process, as long as a forked child would inherit descriptors of it.
    """

    def leave_behind(self) -> None:
        """
        Let go of the broker in the child that was just forked.
        """


def hold(broker: Inherited) -> None:
    """
    Let children that are forked from now on leave the broker behind.
    """
    _HELD.add(broker)


def release(broker: Inherited) -> None:
    """
    Undo ``hold``: the broker has no descriptors any more.
    """
    _HELD.discard(broker)


def left_behind() -> NotRunning:
    """
    The error for a test that uses a broker in a child of the process that has it.
    """
    return NotRunning(
        "the broker runs in the process that forked this one",
        "clients reach it from here too, and Broker() starts another one",
    )


def replace_sockets(ports: Collection[int]) -> None:
    """
    Replace the sockets that listen on these ports, or whose connections were accepted there.
    """
    replace_descriptors(fd for fd in _sockets() if _local_port(fd) in ports)


def replace_descriptors(descriptors: Iterable[int]) -> None:
    """
    Replace descriptors by ones of ``/dev/null``.
    """
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        for fd in descriptors:
            os.dup2(nothing, fd, inheritable=False)
    finally:
        os.close(nothing)


def _sockets() -> Iterator[int]:
    for fd in _descriptors():
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                yield fd


def _descriptors() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        return list(range(_MOST_DESCRIPTORS))


def _local_port(fd: int) -> int | None:
    try:
        found = socket.socket(fileno=fd)
    except OSError:
        return None
    try:
        address = found.getsockname()
    except OSError:
        return None
    finally:
        found.detach()  # or it would close the descriptor
    return address[1] if isinstance(address, tuple) and len(address) >= 2 else None


_HELD: Final[WeakSet[Inherited]] = WeakSet()
_LEFT: Final[list[Inherited]] = []
"""
Of the parent. They are not collected: their event loops and processes are not this process's.
"""


def _after_fork_in_child() -> None:
    left = list(_HELD)
    _HELD.clear()
    _LEFT.extend(left)
    for broker in left:
        broker.leave_behind()


os.register_at_fork(after_in_child=_after_fork_in_child)
