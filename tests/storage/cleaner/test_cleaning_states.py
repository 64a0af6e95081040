"""
The states of compacted logs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from barnabas.storage.cleaner.states import CleaningStates, LogCleaningAborted, Paused, Working
from barnabas.storage.state_files.file_names import TopicPartition

P = TopicPartition("t", 0)
Q = TopicPartition("t", 1)


def started(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def joined(thread: threading.Thread) -> bool:
    thread.join(60)
    return not thread.is_alive()


class Aborting:
    """
    A thread that needs a log of the cleaner; ``begun`` is set once it waits.
    """

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.states = CleaningStates(self.begun.set)
        self.states.begin(P)
        self.thread = started(lambda: self.states.abort_and_pause(P))
        assert self.begun.wait(10)


def test_log_is_free_before_and_after_cleaning() -> None:
    states = CleaningStates()

    assert states.get(P) is None
    states.begin(P)
    assert Working.IN_PROGRESS is states.get(P)
    states.check(P)
    assert states.end(P)
    assert states.get(P) is None


def test_log_is_cleaned_by_one_thread_at_a_time() -> None:
    states = CleaningStates()
    states.begin(P)

    with pytest.raises(AssertionError):
        states.begin(P)


def test_free_log_is_paused_at_once() -> None:
    states = CleaningStates()

    states.abort_and_pause(P)

    assert Paused(1) == states.get(P)
    with pytest.raises(AssertionError):
        states.begin(P)


def test_pauses_nest() -> None:
    states = CleaningStates()
    seen = []

    for change in (states.abort_and_pause,) * 3 + (states.resume,) * 3:
        change(P)
        seen.append(states.get(P))

    assert [Paused(1), Paused(2), Paused(3), Paused(2), Paused(1), None] == seen


def test_pause_waits_until_the_cleaner_releases_the_log() -> None:
    aborting = Aborting()

    assert Working.ABORTED is aborting.states.get(P)
    assert aborting.thread.is_alive()
    with pytest.raises(LogCleaningAborted):
        aborting.states.check(P)
    aborting.states.check(Q)
    assert not aborting.states.end(P)
    assert joined(aborting.thread)
    assert Paused(1) == aborting.states.get(P)
    aborting.states.resume(P)
    assert aborting.states.get(P) is None


def test_two_threads_may_wait_to_pause_the_same_log() -> None:
    aborting = Aborting()
    second = started(lambda: aborting.states.abort_and_pause(P))

    aborting.states.end(P)

    assert joined(aborting.thread)
    assert joined(second)
    assert Paused(2) == aborting.states.get(P)


def test_pause_without_waiting_takes_free_logs_only() -> None:
    states = CleaningStates()
    states.begin(P)

    assert [Q] == states.pause_free([P, Q])
    assert (Working.IN_PROGRESS, Paused(1)) == (states.get(P), states.get(Q))
    assert [] == states.pause_free([P, Q])


@pytest.mark.parametrize("prepare", [lambda states: None, lambda states: states.begin(P)])
def test_only_a_paused_log_can_be_resumed(prepare: Callable[[CleaningStates], None]) -> None:
    states = CleaningStates()
    prepare(states)

    with pytest.raises(AssertionError):
        states.resume(P)


@pytest.mark.parametrize("prepare", [lambda states: None, lambda states: states.abort_and_pause(P)])
def test_only_a_cleaning_in_progress_can_end(prepare: Callable[[CleaningStates], None]) -> None:
    states = CleaningStates()
    prepare(states)

    with pytest.raises(AssertionError):
        states.end(P)
