"""
The states of compacted logs, by which the cleaner and other threads exclude each other.

::

    state          next state, by method
    free           IN_PROGRESS  begin           Paused(1)    abort_and_pause, pause_free
    IN_PROGRESS    free         end             ABORTED      abort_and_pause
    ABORTED        Paused(1)    end
    Paused(n)      Paused(n+1)  abort_and_pause Paused(n-1)  resume; free if n is 1

A log is *free* if it is in no state. A thread that changes it pauses it, which waits until the
cleaner has released it, and resumes it afterwards; pauses nest (Kafka's LogCleaningState).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final

from barnabas.protocol.structs import NamedTuple
from barnabas.storage.topic_partition import TopicPartition


class LogCleaningAborted(Exception):
    """
    Another thread waits for the log: it deletes or truncates it, or changes its policy.
    """


class CleanerStopped(LogCleaningAborted):
    """
    The cleaner thread is to end.
    """


class Working(Enum):
    """
    The cleaner works on a log.
    """

    IN_PROGRESS = "in progress"
    ABORTED = "aborted"
    """Another thread waits until the cleaner releases the log."""


class Paused(NamedTuple):
    """
    The cleaner leaves a log alone, until it was resumed *times* times.
    """

    times: int


CleaningState = Working | Paused


class CleaningStates:
    """
    The states of all logs that are not free.

    Invariants:

    1. A log is worked on by one thread at a time, from ``begin`` to ``end``.
    2. Between the return of ``abort_and_pause`` and its ``resume`` the cleaner does not work on the
       log.

    Safe from any thread. The states do not change while a thread holds ``lock``, which is
    reentrant.
    """

    def __init__(self, on_abort: Callable[[], None] = lambda: None) -> None:
        """
        Args:
            on_abort: called when a thread begins to wait for the cleaner.
        """
        self.lock: Final = threading.Condition(threading.RLock())
        self._states: dict[TopicPartition, CleaningState] = {}
        self._on_abort = on_abort

    def get(self, partition: TopicPartition) -> CleaningState | None:
        """
        The state of a log; None if it is free.
        """
        return self._states.get(partition)

    # For the cleaner.

    def begin(self, partition: TopicPartition) -> None:
        """
        Take a log that is free.
        """
        with self.lock:
            assert partition not in self._states, f"{partition} is {self._states[partition]}"
            self._states[partition] = Working.IN_PROGRESS

    def check(self, partition: TopicPartition) -> None:
        """
        Raises:
            LogCleaningAborted: another thread waits until the cleaner releases the log.
        """
        if self._states.get(partition) is Working.ABORTED:
            raise LogCleaningAborted(f"The cleaning of {partition} was aborted")

    def end(self, partition: TopicPartition) -> bool:
        """
        Release a log; return false if the work was aborted: the thread that did so has the log now.
        """
        with self.lock:
            state = self._states.get(partition)
            assert isinstance(state, Working), f"{partition} is {state}"
            if state is Working.IN_PROGRESS:
                del self._states[partition]
                return True
            self._states[partition] = Paused(1)
            self.lock.notify_all()
            return False

    # For other threads.

    def pause_free(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """
        Pause the logs that are free, without waiting for the others; return the paused ones.
        """
        with self.lock:
            free = [partition for partition in partitions if partition not in self._states]
            self._states.update(dict.fromkeys(free, Paused(1)))
        return free

    def abort_and_pause(self, partition: TopicPartition) -> None:
        """
        Pause a log; return once the cleaner has released it.
        """
        with self.lock:
            # Of two threads at the same time, the second adds a pause.
            self.lock.wait_for(lambda: self._states.get(partition) is not Working.ABORTED)
            state = self._states.get(partition)
            if state is Working.IN_PROGRESS:
                self._states[partition] = Working.ABORTED
                self._on_abort()
                self.lock.wait_for(lambda: isinstance(self._states.get(partition), Paused))
            else:
                times = state.times if isinstance(state, Paused) else 0
                self._states[partition] = Paused(times + 1)

    def resume(self, partition: TopicPartition) -> None:
        """
        Take back one pause.
        """
        with self.lock:
            state = self._states.get(partition)
            assert isinstance(state, Paused), f"{partition} is {state}"
            if state.times > 1:
                self._states[partition] = Paused(state.times - 1)
            else:
                del self._states[partition]
                self.lock.notify_all()
