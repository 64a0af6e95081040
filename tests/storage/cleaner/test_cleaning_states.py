from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from barnabas.storage.cleaner.states import CleaningStates, LogCleaningAborted, Paused, Working
from barnabas.storage.topic_partition import TopicPartition

P = TopicPartition("t", 0)
Q = TopicPartition("t", 1)


def started(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def nothing(states: CleaningStates) -> None: ...


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


def begin(states: CleaningStates) -> None:
    states.begin(P)


@pytest.mark.parametrize(
    ("before", "change"),
    [
        (begin, CleaningStates.begin),
        (nothing, CleaningStates.resume),
        (begin, CleaningStates.resume),
        (nothing, CleaningStates.end),
        (lambda states: states.abort_and_pause(P), CleaningStates.end),
    ],
    ids=["begin twice", "resume a free log", "resume a cleaning", "end nothing", "end a pause"],
)
def test_change_that_does_not_fit_the_state_of_a_log_is_refused(
    before: Callable[[CleaningStates], None],
    change: Callable[[CleaningStates, TopicPartition], object],
) -> None:
    states = CleaningStates()
    before(states)

    with pytest.raises(AssertionError):
        change(states, P)
