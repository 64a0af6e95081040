"""
A broker in the process of the test: a thread of its own, and an event loop of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Thread
from typing import Concatenate, ParamSpec, TypeVar

from barnabas.server.config import Listener
from barnabas.storage.fs.interface import Files
from barnabas.testing.disks.crashable import Choose, CrashableFiles
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.errors import BrokerError, hides_frame
from barnabas.testing.hosts import forks
from barnabas.testing.hosts.embedded import Embedded, Setup
from barnabas.testing.hosts.host import cannot_lose_power, not_running
from barnabas.testing.hosts.loop import CountingLoop
from barnabas.testing.logs import LogCapture
from barnabas.testing.manual_clock import PATIENCE, ManualClock
from barnabas.testing.real_time import real_ms
from barnabas.testing.rules import RuleTable

__tracebackhide__ = hides_frame

P = ParamSpec("P")
R = TypeVar("R")


class ThreadHost:
    """
    A ``Host`` in a thread of this process.
    """

    def __init__(self, setup: Setup, files: Files | None = None) -> None:
        """
        Args:
            files: a disk in place of the one that *setup* describes.
        """
        start_ms = real_ms() if setup.start_ms is None else setup.start_ms
        self.clock = ManualClock(start_ms, runs=setup.clock_runs)
        if files is None and setup.directory is None:
            files = MemoryFiles()
        if isinstance(files, MemoryFiles):
            files.now_ms = self.clock.now_ms
        self.files = files
        self._setup = setup
        self._rules = RuleTable()
        self._log = LogCapture()
        self._running: _Running | None = None

    @property
    def is_running(self) -> bool:
        return self._running is not None and not self._running.is_left_behind

    @property
    def listeners(self) -> Sequence[Listener]:
        return self._setup.listeners

    @property
    def log(self) -> str:
        return self.log_text()

    def log_text(self) -> str:
        """
        ``log``, as a method.
        """
        return self._log.text

    def start(self) -> tuple[Listener, ...]:
        """
        Start, and return the listeners.
        """
        if self._running is not None:
            raise forks.left_behind()
        self._log.attach()
        try:
            broker = Embedded(self._setup, files=self.files, clock=self.clock, rules=self._rules)
            running = _Running(broker)
            listeners = running.start()
        except BaseException:
            self._log.detach()
            raise
        self._setup = self._setup._replace(listeners=listeners)
        self._running = running
        return listeners

    def stop(self) -> None:
        running = self._running
        if running is not None and not running.is_left_behind:
            self._running = None
            running.stop()
            self._log.detach()

    def close(self) -> None:
        self.stop()

    def kill(self) -> None:
        if not isinstance(self.files, MemoryFiles):
            raise BrokerError(
                "a broker in a directory is killed in a process of its own", "Broker(process=True)"
            )
        self._end_abruptly(self.files.kill)

    def power_loss(self, choose: Choose) -> None:
        if not isinstance(self.files, CrashableFiles):
            raise cannot_lose_power()
        self._end_abruptly(partial(self.files.power_loss, choose))

    def _end_abruptly(self, remember: Callable[[], Callable[[], None]]) -> None:
        """
        Stop, and restore the files as they were when the last answer could leave.
        """
        running = self._expect_running()
        restore = running.run(running.broker.cut_off(remember))
        self.stop()
        restore()

    def call(
        self,
        operation: Callable[Concatenate[Embedded, P], Awaitable[R]],
        *args: P.args,
        **options: P.kwargs,
    ) -> R:
        running = self._expect_running()
        return running.run(operation(running.broker, *args, **options))

    def now_ms(self) -> int:
        self._expect_running()
        return self.clock.now_ms()

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds, settle=self._expect_running().settle)

    def _expect_running(self) -> _Running:
        if self._running is None:
            raise not_running(self)
        if self._running.is_left_behind:
            raise forks.left_behind()
        return self._running


class _Running:
    """
    One run of a broker, with the thread and the event loop that it has for itself.
    """

    def __init__(self, broker: Embedded) -> None:
        self.broker = broker
        self._loop = CountingLoop()
        self._ready: Future[tuple[Listener, ...]] = Future()
        self._stop = asyncio.Event()
        self._thread = Thread(target=self._run, name="barnabas-broker", daemon=True)
        self._seen = 0
        self.is_left_behind = False
        """Whether this process is a forked child, which has no thread of the broker."""

    def start(self) -> tuple[Listener, ...]:
        """
        Start, and return the listeners.
        """
        forks.hold(self)
        self._thread.start()
        return self._ready.result()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def leave_behind(self) -> None:
        self.is_left_behind = True
        forks.replace_sockets(self.broker.ports())

    def run(self, work: Awaitable[R]) -> R:
        future = asyncio.run_coroutine_threadsafe(_awaited(work), self._loop)
        try:
            return future.result()
        except BrokerError as error:
            # The frames of the future and of the loop say nothing to a test.
            raise error.with_traceback(None) from error.__cause__

    def settle(self) -> None:
        """
        Return when the loop has done all that threads and timers have left for it.
        """
        if self._loop.touches != self._seen:
            asyncio.run_coroutine_threadsafe(self._loop.settle(), self._loop).result(PATIENCE)
            self._seen = self._loop.touches

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        finally:
            forks.release(self)

    async def _serve(self) -> None:
        try:
            await self.broker.start()
        except BaseException as error:
            await self.broker.stop()
            self._ready.set_exception(error)
            return
        self._ready.set_result(tuple(self.broker.listeners))
        await self._stop.wait()
        await self.broker.stop()


async def _awaited(work: Awaitable[R]) -> R:
    return await work
