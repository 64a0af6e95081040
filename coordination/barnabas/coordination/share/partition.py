"""
A share-partition as the server sees it: a window on a partition, the locks that end in it, and
the fetches that wait for records to acquire.

::

    fetch --> acquire ------------------> window
    acknowledge, release, lock ended -->    |    --> share coordinator --> committed --+
                                            ^                                          |
                                            +------------- complete, wake -------------+
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeAlias, TypeVar

from barnabas.coordination.share.aborted import aborted_batches, without_aborted
from barnabas.coordination.share.acknowledging import Acknowledgement, Acknowledging, StateChange
from barnabas.coordination.share.acquiring import AcquireRequest, acquire
from barnabas.coordination.share.coordinator.state import StateToWrite
from barnabas.coordination.share.in_flight import NO_LOCK
from barnabas.coordination.share.window import ShareWindow
from barnabas.protocol.errors import (
    CoordinatorNotAvailable,
    ErrorCode,
    GroupIdNotFound,
    KafkaError,
    NotLeaderOrFollower,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from barnabas.protocol.messages.share_fetch import AcquiredRecords

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock, Timer
    from barnabas.coordination.share.keys import SharePartitionKey
    from barnabas.coordination.share.persister import Persister
    from barnabas.coordination.share.settings import ShareGroupSettings, ShareSettings
    from barnabas.storage.segment.fetch_data import AbortedTransaction
    from barnabas.storage.segment.fetched_batches import FetchedBatch

logger = logging.getLogger(__name__)

Callback: TypeAlias = Callable[[KafkaError | None], None]

_COORDINATOR_ERRORS: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
_FENCED: Final = frozenset({ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH})
_FATAL: Final = (NotLeaderOrFollower, GroupIdNotFound, UnknownTopicOrPartition)
"""
The errors after which the state of a share-partition has to be read again.
"""


class ShareWaiter(Protocol):
    """
    A fetch that waits.
    """

    def wake(self) -> None:
        """
        Look again.
        """


class LogStart(Protocol):
    """
    A log that may lose its oldest records.
    """

    @property
    def log_start_offset(self) -> int:
        """
        The offset of the first record.
        """


class ConsumedPartition(Protocol):
    """
    A partition of a topic, as a share-partition uses it.
    """

    @property
    def leader_epoch(self) -> int:
        """
        The epoch of this broker's leadership.
        """

    @property
    def log(self) -> LogStart:
        """
        The log with its records.
        """


P = TypeVar("P", bound=ConsumedPartition)


class SharePartition(Generic[P]):
    """
    A partition of a topic, as one group consumes it.

    Invariants:

    1. Without a window it is loading, or has failed; with ``error`` it serves no longer.
    2. While a lock may end, a timer is set for that time, or earlier.
    3. One fetch at a time has ``is_fetching``, from its look at the window until it has acquired.

    Used on the event loop's thread only.
    """

    def __init__(
        self,
        key: SharePartitionKey,
        partition: P,
        *,
        coordinator: Persister,
        settings: ShareSettings,
        clock: ServerClock,
        fenced: Callable[[SharePartition[P], KafkaError], None],
    ) -> None:
        """
        Args:
            fenced: called when the state has to be read again, with the error.
        """
        self.key = key
        self.partition = partition
        self.window: ShareWindow | None = None
        self.error: KafkaError | None = None
        self.is_fetching = False
        self._is_wanted = False  # by a fetch that found another one at it
        self.waiters: dict[ShareWaiter, None] = {}
        self._state_epoch = 0
        self._leader_epoch = partition.leader_epoch
        self._coordinator = coordinator
        self._settings = settings
        self._clock = clock
        self._fenced = fenced
        self._timer: Timer | None = None
        self._timer_at = NO_LOCK

    def __repr__(self) -> str:
        return f"<SharePartition {self}>"

    def __str__(self) -> str:
        return f"{self.partition} of group {self.key.group_id}"

    @property
    def settings(self) -> ShareGroupSettings:
        return self._settings.of(self.key.group_id)

    def open(self, window: ShareWindow, state_epoch: int) -> None:
        """
        Serve: the state is read.
        """
        self.window = window
        self._state_epoch = state_epoch
        self.notify()

    def close(self, error: KafkaError) -> None:
        """
        Serve no longer.
        """
        if self.error is None:
            self.error = error
            self._cancel_timer()
            self.notify()

    def notify(self) -> None:
        """
        Let the waiting fetches look again.
        """
        for waiter in tuple(self.waiters):
            waiter.wake()

    def can_acquire(self) -> bool:
        """
        Whether a fetch may find something.
        """
        if self.is_fetching:
            self._is_wanted = True
            return False
        return (
            self.window is not None
            and self.error is None
            and self.window.can_acquire(self.settings.max_record_locks)
        )

    def end_fetch(self) -> None:
        """
        Let other fetches have it.
        """
        self.is_fetching = False
        if self._is_wanted:
            self._is_wanted = False
            self.notify()

    # Acquiring

    def acquire(
        self,
        request: AcquireRequest,
        fetch_offset: int,
        batches: Sequence[FetchedBatch],
        aborted: Sequence[AbortedTransaction],
    ) -> list[AcquiredRecords]:
        """
        Acquire some of the *batches* that were read from *fetch_offset* on.

        Args:
            aborted: transactions whose records nobody gets.
        """
        window = self.window
        assert window is not None
        acquired = acquire(window, request, fetch_offset, batches)
        if acquired:
            self._arm(request.lock_until)
            if aborted:
                those = aborted_batches(batches, aborted)
                acquired = without_aborted(window, acquired, those)
        return acquired

    def follow_log_start(self) -> None:
        """
        The log has lost the records that were to be fetched.
        """
        window, offset = self.window, self.partition.log.log_start_offset
        if window is not None and offset > window.start_offset:
            window.follow_log_start(offset)

    # Acknowledging

    def acknowledge(
        self, member_id: str, acknowledgements: Sequence[Acknowledgement], callback: Callback
    ) -> None:
        """
        Do what a member says, and tell *callback* when that is written, or why it is not done.
        """
        if self.error is not None or self.window is None:
            callback(self.error or UnknownTopicOrPartition())
            return
        now_ms = self._clock.now_ms()
        settings = self.settings
        lock_until = now_ms + settings.record_lock_duration_ms
        acting = self._acting(member_id, lock_until if settings.may_renew else NO_LOCK)
        try:
            change = acting.acknowledge(acknowledgements, now_ms)
        except KafkaError as error:
            self.notify()
            callback(error.with_traceback(None))
            return
        self._write(change, callback)

    def release(self, member_id: str) -> None:
        """
        Release what a member has acquired: its session has ended.
        """
        if self.error is None and self.window is not None:
            self._write(self._acting(member_id).release())

    def _end_locks(self) -> None:
        self._cancel_timer()
        window = self.window
        if self.error is not None or window is None:
            return
        change = self._acting("").end_locks(self._clock.now_ms())
        self._arm_next()
        self._write(change)
        self.notify()

    def _acting(self, member_id: str, lock_until: int = NO_LOCK) -> Acknowledging:
        assert self.window is not None
        limit = self.settings.delivery_count_limit
        return Acknowledging(
            self.window, member_id, max_delivery_count=limit, lock_until=lock_until
        )

    # Writing

    def _write(self, change: StateChange, callback: Callback = lambda _: None) -> None:
        window = self.window
        assert window is not None
        if not change.batches:
            callback(None)
            return

        def written(error: KafkaError | None) -> None:
            change.complete(is_written=error is None, now_ms=self._clock.now_ms())
            if error is not None:
                error = self._failed(error)
            self.notify()
            callback(error)

        state = StateToWrite(
            state_epoch=self._state_epoch,
            leader_epoch=self._leader_epoch,
            start_offset=window.start_offset,
            delivery_complete_count=window.delivery_complete_count,
            batches=change.batches,
        )
        self._coordinator.write_then(self.key, state, written)

    def _failed(self, error: KafkaError) -> KafkaError:
        """
        A state could not be written: return what a client is told of that.
        """
        logger.warning("%s: its state was not written: %s", self, error)
        error = persister_error(error)
        if isinstance(error, _FATAL):
            self._fenced(self, error)
        else:
            self._arm_next()
        return error

    # Locks

    def _arm(self, lock_until: int) -> None:
        """
        Some lock ends then.
        """
        if self._timer is not None and self._timer_at <= lock_until:
            return
        self._cancel_timer()
        delay_ms = max(0, lock_until - self._clock.now_ms())
        self._timer_at = lock_until
        self._timer = self._clock.call_later(delay_ms / 1000, self._end_locks)

    def _arm_next(self) -> None:
        assert self.window is not None
        lock_until = self.window.next_lock_end()
        if lock_until is not None:
            self._arm(lock_until)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def persister_error(error: KafkaError) -> KafkaError:
    """
    An error of the share coordinator, as a client of a share-partition is told (Kafka
    ``SharePartition.fetchPersisterError``).
    """
    code, text = error.code, str(error)
    if code in _COORDINATOR_ERRORS:
        return CoordinatorNotAvailable(text)
    if code in _FENCED:
        return NotLeaderOrFollower(text)
    if isinstance(error, GroupIdNotFound | UnknownTopicOrPartition):
        return error.with_traceback(None)
    return UnknownServerError(text)
