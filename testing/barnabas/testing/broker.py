"""
A broker inside a test.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Literal, Self, TypeVar

from barnabas.testing import summary
from barnabas.testing.clock import Clock
from barnabas.testing.defaults import partition_counts
from barnabas.testing.disks.crashable import EVERYTHING, NOTHING, CrashableFiles
from barnabas.testing.errors import BrokerError, hides_frame
from barnabas.testing.faults import Chaos, Faults
from barnabas.testing.hosts.child import ChildHost
from barnabas.testing.hosts.embedded import Setup
from barnabas.testing.hosts.host import Host, not_running
from barnabas.testing.hosts.thread import ThreadHost
from barnabas.testing.operations import groups as group_operations
from barnabas.testing.operations import topics as topic_operations
from barnabas.testing.shown import time_of
from barnabas.testing.topic import Topic
from barnabas.testing.waiting import wait_until, wait_until_async

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.server.config import Listener
    from barnabas.storage.fs.interface import Files
    from barnabas.testing.defaults import Config
    from barnabas.testing.views import Group

__tracebackhide__ = hides_frame

T = TypeVar("T")

WAIT_S = 10.0
"""
The default patience of ``wait_until``, in seconds of real time.
"""


class Broker:
    """
    A broker for tests::

        with Broker() as broker:
            producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)

    It runs in a thread of this process, or in a process of its own, on a free port of 127.0.0.1.
    The event loop of an asynchronous test is not used: ``async with`` waits there for the start and
    the stop only.

    It can be stopped and started again: port, data and clock stay. Any thread may use it.
    """

    def __init__(
        self,
        directory: str | PathLike[str] | None = None,
        *,
        disk: Files | None = None,
        config: Config | None = None,
        topics: Mapping[str, int] | Iterable[str] = (),
        clock: Literal["running", "still"] = "running",
        start_ms: int | None = None,
        process: bool = False,
    ) -> None:
        """
        Args:
            directory: the log directory, with Kafka's files; by default the data are in memory.
            disk: one of ``barnabas.testing.disks``, to keep the data on.
            config: options of the broker, such as ``{"log.retention.ms": 60_000}``.
            topics: names of topics to create at a start unless they exist, or numbers of partitions
                by name.
            clock: whether the clock runs with real time, or stands still between two moves.
            start_ms: the clock at the first start, in ms since 1970 UTC; by default the real time.
            process: run in a process of its own, which the end of the with block ends.

        Raises:
            ValueError: a *disk* is given, and a *directory* or a *process*; *clock* is neither; or
                *start_ms* is outside the years 1 to 9999.
            TypeError: *topics* is one text in place of a list.
        """
        if clock not in ("running", "still"):
            raise ValueError(f"the clock is 'running' or 'still', not {clock!r}")
        if disk is not None and directory is not None:
            raise ValueError("a broker is on a disk or in a directory, not both")
        if disk is not None and process:
            raise ValueError("a disk of this process cannot be used by another process")
        if start_ms is not None:
            time_of(start_ms)  # or it has no name, and no log line
        self._topics = partition_counts(topics)
        setup = Setup(
            config=dict(config or {}),
            directory=None if directory is None else Path(directory),
            clock_runs=clock == "running",
            start_ms=start_ms,
        )
        self._host: Host = ChildHost(setup) if process else ThreadHost(setup, disk)
        self._is_child = process
        self._can_lose_power = isinstance(disk, CrashableFiles)

    # Start and stop

    def start(self) -> Self:
        """
        Start; when this returns, clients are served. Without effect on a broker that runs.

        Raises:
            InvalidConfig: an option is unknown, or its value is not acceptable.
            InvalidTopic: one of the topics cannot be created.
            StartFailed: the directory is in use, or its files cannot be served.
        """
        if self._host.is_running:
            return self
        self._host.start()
        try:
            for name, partitions in self._topics.items():
                topic = self.topic(name)
                if not topic.exists:
                    topic.create(partitions)
        except BaseException:
            self._host.close()
            raise
        return self

    def stop(self) -> None:
        """
        Stop as a signal does: answer the requests in progress, close all connections, and flush.
        Without effect on a broker that does not run.
        """
        self._host.stop()

    def restart(self) -> Self:
        """
        Stop and start again, on the same port and the same data.

        Raises:
            StartFailed: the port is taken meanwhile.
        """
        self.stop()
        return self.start()

    def kill(self) -> None:
        """
        End at once, as SIGKILL does: nobody is answered, and nothing is flushed. All that was
        written is there at the next ``start``, except the data in the memory of a process that is
        killed.

        Raises:
            NotRunning: the broker does not run.
            BrokerError: it is in this process and in a directory.
        """
        self._host.kill()

    def power_loss(self, keep: Literal["nothing", "everything"] | int = "nothing") -> None:
        """
        End at once, and the machine with it; ``start`` continues on what the disk has kept. The
        broker is on a ``CrashableFiles`` disk.

        Args:
            keep: of what is not synced; a number is the seed of a choice for each write.

        Raises:
            NotRunning: the broker does not run.
            BrokerError: the disk of the broker cannot crash.
        """
        if isinstance(keep, int):
            seeded = Random(keep)
            self._host.power_loss(lambda most: seeded.randint(0, most))
        else:
            self._host.power_loss(NOTHING if keep == "nothing" else EVERYTHING)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self._host.close()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._host.close)

    # What clients need

    @property
    def bootstrap_servers(self) -> str:
        """
        The address for clients, ``127.0.0.1:port``, or the one that the first of the ``listeners``
        in the configuration advertises.

        Raises:
            NotRunning: the broker is not started yet.
        """
        return self._listeners()[0].bootstrap

    @property
    def port(self) -> int:
        """
        The port, which stays the same over restarts.

        Raises:
            NotRunning: the broker is not started yet.
        """
        return self._listeners()[0].port

    @property
    def listeners(self) -> dict[str, str]:
        """
        The addresses for clients, by the names of the listeners.

        Raises:
            NotRunning: the broker is not started yet.
        """
        return {listener.name: listener.bootstrap for listener in self._listeners()}

    @property
    def is_running(self) -> bool:
        """
        Whether it is started and not stopped.
        """
        return self._host.is_running

    def _listeners(self) -> Sequence[Listener]:
        listeners = self._host.listeners
        if not listeners:
            raise not_running(self._host)
        return listeners

    # What tests see and do

    @property
    def clock(self) -> Clock:
        """
        The clock of the broker, which a test moves.
        """
        return Clock(self._host)

    @property
    def faults(self) -> Faults:
        """
        The faults that requests meet.
        """
        return Faults(self._host)

    def chaos(self, seed: int, *, one_in: int = 10) -> Chaos:
        """
        Let chance fail requests from now on, until ``stop`` or the end of a with block. The same
        seed fails the same requests. Each fault has a line in the log.

        Args:
            one_in: one of so many requests meets a fault.

        Raises:
            ValueError: *one_in* is not positive.
            NotRunning: the broker does not run.
        """
        if one_in < 1:
            raise ValueError(f"one_in is at least 1, not {one_in}")
        return Chaos(self._host, seed, one_in, self._crash)

    def _crash(self, random: Random) -> str:
        """
        End abruptly and start again, as chance wants it; how.

        Raises:
            BrokerError: the rules of chance would not outlive it.
        """
        if self._is_child:
            raise BrokerError("chaos ends with the process of the broker: leave out process=True")
        if self._can_lose_power and random.randrange(2):
            keep = random.randrange(1000)
            self.power_loss(keep)
            what = f"power loss, keep={keep}"
        else:
            self.kill()
            what = "kill"
        self.start()
        return what

    def topic(self, name: str) -> Topic:
        """
        The topic with that name, whether it exists or not.
        """
        return Topic(self._host, name)

    @property
    def topics(self) -> list[Topic]:
        """
        The topics that exist, by name, without the internal ones.

        Raises:
            NotRunning: the broker does not run.
        """
        return [Topic(self._host, name) for name in self._host.call(topic_operations.names)]

    @property
    def groups(self) -> dict[str, Group]:
        """
        The groups of all types by their ids, as they are now.

        Raises:
            NotRunning: the broker does not run.
        """
        return {group.id: group for group in self._host.call(group_operations.groups)}

    @property
    def log(self) -> str:
        """
        The last 1000 lines of the broker's log.
        """
        return self._host.log

    def wait_until(
        self, condition: Callable[[], T], *, seconds: float = WAIT_S, what: str = "the condition"
    ) -> T:
        """
        Ask until *condition* returns something that is true, and return that.

        A condition that raises ``AssertionError`` or ``LookupError`` is not true yet, so that it
        can have assertions and look for groups that do not exist yet.

        Args:
            seconds: of real time.
            what: a name of the condition, for the message.

        Raises:
            WaitTimeout: it did not come true; the message has the last result or failure, the
                topics and groups, and the end of the log.
        """
        return wait_until(condition, seconds=seconds, what=what, seen=self.summary)

    async def wait_until_async(
        self, condition: Callable[[], T], *, seconds: float = WAIT_S, what: str = "the condition"
    ) -> T:
        """
        Like ``wait_until``; the event loop of the test runs meanwhile.
        """
        return await wait_until_async(condition, seconds=seconds, what=what, seen=self.summary)

    def summary(self) -> str:
        """
        The topics with their records, the groups, and the end of the log, on a few dozen lines. If
        something cannot be shown, a line has the reason; nothing is raised.
        """
        return summary.text(self._host, lambda: self.log)

    def __repr__(self) -> str:
        listeners = self._host.listeners if self._host.is_running else ()
        return f"<Broker {listeners[0].bootstrap if listeners else 'not running'}>"
