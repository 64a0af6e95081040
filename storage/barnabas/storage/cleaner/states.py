"""
Who may work on a compacted log: the cleaner, or those who change it from outside.

::

    state          what it becomes, by what
    free           IN_PROGRESS  begin           Paused(1)    abort_and_pause, pause_free
    IN_PROGRESS    free         end             ABORTED      abort_and_pause
    ABORTED        Paused(1)    end
    Paused(n)      Paused(n+1)  abort_and_pause Paused(n-1)  resume; free if n is 1

A log is *free* if it is in no state. Whoever wants to change it pauses it, which waits until the
cleaner has let go of it, and resumes it afterwards; pauses nest (Kafka's LogCleaningState).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final

from barnabas.protocol.structs import NamedTuple
from barnabas.storage.cleaner.log_to_clean import LogCleaningAborted
from barnabas.storage.state_files.file_names import TopicPartition


class Working(Enum):
    """
    The cleaner has a log in its hands.
    """

    IN_PROGRESS = "in progress"
    ABORTED = "aborted"
    """Somebody waits for it to let go."""


class Paused(NamedTuple):
    """
    The cleaner leaves a log alone, until it was resumed so many *times*.
    """

    times: int


CleaningState = Working | Paused


class CleaningStates:
    """
    The states of all logs that are not free.

    Invariants:

    1. A log is worked on by one thread at a time, from ``begin`` to ``end``.
    2. When ``abort_and_pause`` returns nobody works on the log, and nobody begins to before the
       ``resume`` that belongs to it.

    Safe from any thread. Who has to see the states stand still holds ``lock``, which can be taken
    again by the thread that has it.
    """

    def __init__(self, on_abort: Callable[[], None] = lambda: None) -> None:
        """
        Args:
            on_abort: called when somebody begins to wait for the cleaner.
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
            LogCleaningAborted: somebody waits for the cleaner to let go of the log.
        """
        if self._states.get(partition) is Working.ABORTED:
            raise LogCleaningAborted(f"The cleaning of {partition} was aborted")

    def end(self, partition: TopicPartition) -> bool:
        """
        Let go of a log; false if somebody has aborted the work, who has it now.
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

    # For everybody else.

    def pause_free(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """
        Pause those of the logs that are free, without waiting for the others; which that were.
        """
        with self.lock:
            free = [partition for partition in partitions if partition not in self._states]
            self._states.update(dict.fromkeys(free, Paused(1)))
        return free

    def abort_and_pause(self, partition: TopicPartition) -> None:
        """
        Let the cleaner leave a log alone, and return when it does.
        """
        with self.lock:
            # Two who want the same log at the same time: the second is a pause more.
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
