"""
A broker in a process of its own, which the test's process controls through a pipe.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from threading import Lock
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar
from weakref import finalize

from barnabas.server.config import Listener
from barnabas.storage.clock import seconds_now, sleep
from barnabas.testing.disks.crashable import Choose
from barnabas.testing.errors import BrokerDied, hides_frame
from barnabas.testing.hosts import forks
from barnabas.testing.hosts.embedded import Embedded, Setup
from barnabas.testing.hosts.host import cannot_lose_power, not_running

__tracebackhide__ = hides_frame

P = ParamSpec("P")
R = TypeVar("R")

MODULE: Final = "barnabas.testing.hosts.child_process"
END_S: Final = 10.0
"""
The time that a process has for its end, in seconds.
"""
PAUSE_S: Final = 0.005


class Request(NamedTuple):
    """
    A method of the host in the other process, and its arguments.
    """

    method: str
    args: tuple[Any, ...]
    options: dict[str, Any]


END: Final = Request("", (), {})
"""
The last request, which is not answered.
"""


class Answer(NamedTuple):
    """
    The result of a request, or the error that it raised.
    """

    result: Any
    error: Exception | None = None


class ChildHost:
    """
    A ``Host`` in another process, where a ``ThreadHost`` does the work.

    The process lives from the first start until ``close`` or ``kill``, over any number of stops.
    The kernel closes its pipe when this process ends, however it does, and so it ends as well.
    """

    def __init__(self, setup: Setup) -> None:
        self._is_started = False
        self._setup = setup
        self._child: _Child | None = None

    @property
    def is_running(self) -> bool:
        return self._is_started and not self._is_left_behind

    @property
    def _is_left_behind(self) -> bool:
        """
        Whether the process belongs to the parent of this one, which is a forked child.
        """
        return self._child is not None and self._child.is_left_behind

    @property
    def listeners(self) -> Sequence[Listener]:
        return self._setup.listeners

    @property
    def log(self) -> str:
        return "" if self._child is None else str(self._child.ask("log_text"))

    def start(self) -> None:
        if self._is_left_behind:
            raise forks.left_behind()
        if self._child is None or not self._child.is_alive:
            self._child = _Child(self._setup)
        self._setup = self._setup._replace(listeners=self._child.ask("start"))
        self._is_started = True

    def stop(self) -> None:
        if self.is_running:
            self._is_started = False
            with suppress(BrokerDied):
                self._expect_child().ask("stop")

    def close(self) -> None:
        if self._is_left_behind:
            return
        self.stop()
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def power_loss(self, choose: Choose) -> None:
        raise cannot_lose_power()

    def kill(self) -> None:
        now_ms = self.now_ms()
        child = self._expect_child()
        self._setup = self._setup._replace(start_ms=now_ms)
        self._is_started, self._child = False, None
        child.kill()

    def call(
        self,
        operation: Callable[Concatenate[Embedded, P], Awaitable[R]],
        *args: P.args,
        **options: P.kwargs,
    ) -> R:
        result: R = self._expect_running().ask("call", operation, *args, **options)
        return result

    def now_ms(self) -> int:
        return int(self._expect_running().ask("now_ms"))

    def advance(self, seconds: float) -> None:
        self._expect_running().ask("advance", seconds)

    def _expect_running(self) -> _Child:
        if self._is_left_behind:
            raise forks.left_behind()
        if not self.is_running:
            raise not_running(self)
        return self._expect_child()

    def _expect_child(self) -> _Child:
        if self._child is None:
            raise not_running(self)
        return self._child


class _Child:
    """
    The other process.
    """

    def __init__(self, setup: Setup) -> None:
        ours, theirs = Pipe()
        self._pipe = ours
        self._lock = Lock()
        self.is_left_behind = False
        forks.hold(self)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", MODULE, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self._end = finalize(self, _end, self._process, ours)
        ours.send(setup)

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, method: str, *args: Any, **options: Any) -> Any:
        """
        Call a method of the host there, and return its result.

        Raises:
            BrokerDied: the process has ended.
            NotRunning: it belongs to the parent of this process.
            Exception: the method raised it.
        """
        if self.is_left_behind:
            raise forks.left_behind()
        try:
            with self._lock:
                self._pipe.send(Request(method, args, options))
                answer: Answer = self._pipe.recv()
        except (EOFError, OSError) as error:
            if not _has_ended(self._process):
                raise BrokerDied("the process of the broker has closed its pipe") from error
            status = self._process.returncode
            raise BrokerDied(f"the process of the broker has ended, status {status}") from error
        if answer.error is not None:
            raise answer.error
        return answer.result

    def kill(self) -> None:
        """
        End the process at once, as SIGKILL does.
        """
        self._process.kill()
        self.end()

    def end(self) -> None:
        """
        Let the process end, and wait for it.
        """
        # Its pipe ends with the last copy, which may be in a child that a library has forked.
        if self._lock.acquire(blocking=False):
            with suppress(OSError):
                self._pipe.send(END)
            self._lock.release()
        self._end()
        forks.release(self)

    def leave_behind(self) -> None:
        self.is_left_behind = True
        self._end.detach()
        forks.replace_descriptors([self._pipe.fileno()])


def _end(process: subprocess.Popen[bytes], pipe: Connection) -> None:
    pipe.close()
    if not _has_ended(process):
        process.kill()
        process.wait()


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """
    Wait for the end of a process, for ``END_S`` of real time. The time limit of ``Popen.wait`` does
    not pass while a test freezes the time.
    """
    deadline = seconds_now() + END_S
    while process.poll() is None:
        if seconds_now() > deadline:
            return False
        sleep(PAUSE_S)
    return True
