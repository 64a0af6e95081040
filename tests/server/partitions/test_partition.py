"""
A partition: when an append counts, and who is told.
"""

from __future__ import annotations

import asyncio
import itertools
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast
from uuid import UUID

import pytest

from barnabas.protocol.errors import (
    FencedLeaderEpoch,
    KafkaError,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.control import ControlRecordType, EndTransactionMarker
from barnabas.protocol.records.record import SimpleRecord
from barnabas.server import purgatory as purgatories
from barnabas.server.fetch.delayed import DelayedFetch
from barnabas.server.partitions.partition import EpochEnd, Partition
from barnabas.server.partitions.watch import Watch
from barnabas.server.purgatory import FetchPurgatory
from barnabas.server.scheduling.turns import TURN_S, Turns, Work
from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.logs import append, config_with, new_log, sent_batch
from tests.support.segments import FIRST_TIMESTAMP

LOG_END: Final = FetchIsolation.LOG_END


class Disk(FailingFiles):
    """
    A disk in memory that can be made to fail, and counts the fsyncs of segments.
    """

    def __init__(self) -> None:
        super().__init__()
        self.segment_syncs = 0

    def step(self, action: str, path: Path, position: int = 0, data: bytes = b"") -> None:
        if action == "sync" and path.suffix == ".log":
            self.segment_syncs += 1
        super().step(action, path, position, data)


class Executor(ThreadPoolExecutor):
    """
    An executor whose work is done when the test says so.
    """

    def __init__(self) -> None:
        super().__init__(1)
        self.waiting: list[Callable[[], None]] = []
        self.meanwhile: Callable[[], object] = lambda: None

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        from concurrent.futures import Future  # noqa: PLC0415  # shadows the name above

        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(work(*args))
            except Exception as error:
                future.set_exception(error)

        self.waiting.append(run)
        return future

    async def run(self) -> None:
        """
        Do what was asked for so far, and let the loop hear of it.
        """
        waiting, self.waiting = self.waiting, []
        for work in waiting:
            work()
        self.meanwhile()
        self.meanwhile = lambda: None
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def log(disk: Disk) -> Log:
    return new_log(config=config_with(), files=disk)


@pytest.fixture
def io() -> Executor:
    return Executor()


@pytest.fixture
def partition(log: Log, io: Executor) -> Partition:
    return Partition("orders", 3, topic_id=UUID(int=9), leader_epoch=4, log=log, io=io)


def batch(size: int = 100) -> memoryview:
    return sent_batch(size=size)


def flush_after(partition: Partition, messages: int) -> None:
    """
    Let appends count only after an fsync of so many.
    """
    partition.log.update_config(config_with(flush_messages=messages))


@pytest.mark.parametrize("is_late", [False, True])
def test_append_is_committed_at_once(partition: Partition, is_late: bool) -> None:
    told: list[KafkaError | None] = []
    if is_late:
        partition.append(batch())
    partition.when_committed(1, told.append)
    if not is_late:
        partition.append(batch())

    assert 1 == partition.log.high_watermark
    assert [None] == told


async def test_append_is_committed_after_the_fsync_with_flush_messages(
    partition: Partition, io: Executor
) -> None:
    flush_after(partition, 1)
    told: list[KafkaError | None] = []

    partition.append(batch())
    partition.when_committed(1, told.append)

    assert (0, []) == (partition.log.high_watermark, told)
    await io.run()
    assert (1, [None]) == (partition.log.high_watermark, told)


async def test_waiting_appends_share_one_fsync(
    partition: Partition, disk: Disk, io: Executor
) -> None:
    flush_after(partition, 1)
    told: list[int] = []

    def note(offset: int, _error: KafkaError | None) -> None:
        told.append(offset)

    for offset in range(10):
        partition.append(batch())
        partition.when_committed(offset + 1, partial(note, offset))

    await io.run()

    assert list(range(10)) == told
    assert 1 == disk.segment_syncs
    assert [] == io.waiting


async def test_appends_during_an_fsync_share_the_next_one(
    partition: Partition, disk: Disk, io: Executor
) -> None:
    flush_after(partition, 1)
    told: list[int] = []

    def append(offset: int) -> None:
        partition.append(batch())
        partition.when_committed(offset + 1, lambda _: told.append(offset))

    def append_more() -> None:
        for offset in range(1, 10):
            append(offset)

    append(0)
    io.meanwhile = append_more
    await io.run()
    first = list(told)
    await io.run()

    assert [0] == first
    assert list(range(10)) == told
    assert 2 == disk.segment_syncs


async def test_append_during_an_fsync_waits_even_if_it_requires_none(
    partition: Partition, io: Executor
) -> None:
    flush_after(partition, 2)
    partition.append(batch())
    partition.append(batch())
    partition.append(batch())

    assert 1 == partition.log.high_watermark
    await io.run()

    assert 3 == partition.log.high_watermark


async def test_few_appends_during_an_fsync_need_no_other_one(
    partition: Partition, disk: Disk, io: Executor
) -> None:
    flush_after(partition, 2)
    partition.append(batch())
    partition.append(batch())
    io.meanwhile = lambda: partition.append(batch())
    await io.run()

    assert (3, 1) == (partition.log.high_watermark, disk.segment_syncs)
    assert [] == io.waiting


async def test_failed_fsync_takes_the_partition_offline(
    partition: Partition, disk: Disk, io: Executor
) -> None:
    flush_after(partition, 1)
    told: list[KafkaError | None] = []
    partition.append(batch())
    partition.when_committed(1, told.append)

    disk.fail(only=frozenset({"sync"}))
    await io.run()

    assert [KafkaStorageError] == [type(error) for error in told]
    assert [partition.error] == told
    assert 0 == partition.log.high_watermark
    with pytest.raises(KafkaStorageError):
        partition.append(batch())


@pytest.mark.parametrize("ends", ["committed", "closed"])
def test_failing_listener_affects_no_other(
    partition: Partition, caplog: pytest.LogCaptureFixture, ends: str
) -> None:
    told: list[KafkaError | None] = []

    def fail(_: KafkaError | None) -> None:
        raise ValueError("nobody has foreseen this")

    partition.when_committed(1, fail)
    partition.when_committed(1, told.append)
    if ends == "committed":
        partition.append(batch())
    else:
        partition.close(KafkaStorageError("the disk is gone"))

    assert 1 == len(told)
    assert "nobody has foreseen this" in caplog.text


async def test_failing_fetch_affects_no_other() -> None:
    purgatory = purgatory_of(ManualClock())

    def fail() -> None:
        raise ValueError("nobody has foreseen this")

    works = [waiting(fetch_in(purgatory, read)) for read in (fail, lambda: None)]
    purgatory.wake_all()
    answers = await asyncio.gather(*(work.future() for work in works), return_exceptions=True)

    assert ["ValueError", "str"] == [type(answer).__name__ for answer in answers]


async def test_other_requests_are_served_while_many_fetches_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(purgatories, "perf_counter", lambda: next(ticks) * TURN_S / 10)
    purgatory = purgatory_of(ManualClock())
    answers: list[object] = []
    for _ in range(100):
        waiting(fetch_in(purgatory, lambda: None)).then(answers.append)
    purgatory.wake_all()

    answered = []
    while len(answers) < 100:
        await asyncio.sleep(0)
        answered.append(len(answers))

    assert 10 == answered[0]
    assert len(answered) < 20


def test_high_watermark_never_decreases(partition: Partition) -> None:
    # A listener appends before the append that notified it has returned.
    seen = []

    def append(_: KafkaError | None) -> None:
        partition.append(batch())

    partition.when_committed(1, append)
    partition.when_committed(2, lambda _: seen.append(partition.log.high_watermark))

    partition.append(batch())
    partition._advance(1, 0)

    assert [2] == seen
    assert 2 == partition.log.high_watermark


def test_partition_error_does_not_accumulate_tracebacks(partition: Partition) -> None:
    # Each later request raises it, and clients retry often.
    error = KafkaStorageError("the disk is gone")
    partition.close(error)
    for _ in range(100):
        with pytest.raises(KafkaStorageError):
            partition.append(batch())

    assert len(traceback.extract_tb(error.__traceback__)) < 10


async def test_committed_waits_until_an_append_is_committed_or_its_topic_is_deleted(
    partition: Partition, io: Executor
) -> None:
    flush_after(partition, 1)
    partition.append(batch())
    task = asyncio.create_task(partition.committed(1))
    await asyncio.sleep(0)

    waiting = not task.done()
    await io.run()
    await task
    partition.append(batch())
    another = asyncio.create_task(partition.committed(2))
    await asyncio.sleep(0)
    partition.close()

    assert waiting
    with pytest.raises(UnknownTopicOrPartition):
        await another


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(3, FencedLeaderEpoch), (5, UnknownLeaderEpoch), (-1, None), (4, None)],
    ids=["old", "new", "not checked", "the same"],
)
def test_leader_epoch_is_compared(
    partition: Partition, epoch: int, error: type[KafkaError] | None
) -> None:
    with pytest.raises(error) if error else nullcontext():
        partition.check_leader_epoch(epoch)


@pytest.mark.parametrize(
    ("offset", "last_fetched", "diverging"),
    [
        (10, 2, None),
        (11, 2, EpochEnd(2, 10)),
        (5, 3, EpochEnd(2, 10)),
        (20, 4, None),
    ],
    ids=["at the end", "behind the end", "epoch unknown here", "current"],
)
def test_read_detects_where_logs_diverge(
    partition: Partition,
    offset: int,
    last_fetched: int,
    diverging: EpochEnd | None,
) -> None:
    append(partition.log, 10, leader_epoch=2)
    append(partition.log, 10, leader_epoch=4)

    result = partition.read(
        offset, 100, LOG_END, min_one_message=True, last_fetched_epoch=last_fetched
    )

    assert diverging == result.diverging
    assert (result.data is None) == (diverging is not None)


@pytest.mark.parametrize(("offset", "epoch"), [(2, 2), (9, 7)], ids=["too old", "epoch unknown"])
def test_fetch_position_of_an_unknown_epoch_is_out_of_range(
    partition: Partition, offset: int, epoch: int
) -> None:
    append(partition.log, 10, leader_epoch=2)
    partition.log.delete_records(5)

    with pytest.raises(OffsetOutOfRange):
        partition.read(offset, 100, LOG_END, min_one_message=True, last_fetched_epoch=epoch)


def purgatory_of(clock: ManualClock) -> FetchPurgatory:
    return FetchPurgatory(clock, cast(Any, None))


def fetch_in(
    purgatory: FetchPurgatory, read: Callable[[], None], watch: dict[str, Any] | None = None
) -> DelayedFetch:
    """
    A fetch that calls *read* and answers "records" when its wait is over.

    Args:
        watch: what it wants of a partition; ``missing`` is how many bytes.
    """
    wanted = dict(watch or {"missing": 0})

    async def steps(**_: Any) -> Any:
        read()
        return "records"

    plan = SimpleNamespace(
        min_bytes=wanted.pop("missing"),
        max_wait_ms=500,
        is_enough=lambda _: False,
        is_outdated=lambda _: False,
        read=steps,
        watches=lambda _, waiter: [Watch(waiter, **wanted)] if watch else [],
    )

    return DelayedFetch(purgatory, cast(Any, plan))


def waiting(fetch: DelayedFetch) -> Work[Any]:
    """
    The work of a fetch that waits.
    """
    return Turns().start(fetch.reading(cast(Any, SimpleNamespace(size=0))))


class Fetches:
    def __init__(self, partition: Partition) -> None:
        self.clock = ManualClock()
        self.purgatory = purgatory_of(self.clock)
        self.read: list[DelayedFetch] = []
        self._partition = partition

    def wait(
        self, missing: int, *, limit: int = 10_000, read_committed: bool = False
    ) -> DelayedFetch:
        watch = {
            "missing": missing,
            "partition": self._partition,
            "available": 0,
            "limit": limit,
            "segment": 0,
            "read_committed": read_committed,
        }
        fetch = fetch_in(self.purgatory, lambda: self.read.append(fetch), watch)
        waiting(fetch)
        return fetch


async def test_bytes_beyond_the_partition_limit_do_not_count(partition: Partition) -> None:
    fetches = Fetches(partition)
    fetches.wait(250, limit=200)

    for _ in range(10):
        partition.append(batch(100))
    await asyncio.sleep(0)

    assert [] == fetches.read


async def test_fetch_wakes_once_for_appends_of_one_request(partition: Partition) -> None:
    fetches = Fetches(partition)
    fetch = fetches.wait(1)

    partition.append(batch())
    at_once = list(fetches.read)
    partition.append(batch())
    await asyncio.sleep(0)

    assert ([], [fetch]) == (at_once, fetches.read)


async def test_fetch_of_a_deleted_topic_wakes_at_once(partition: Partition) -> None:
    fetches = Fetches(partition)
    partition.close()

    fetch = fetches.wait(1)
    await asyncio.sleep(0)

    assert [fetch] == fetches.read
    assert not fetches.purgatory.waiting


async def test_read_committed_fetch_waits_for_the_last_stable_offset(
    partition: Partition,
) -> None:
    begin = build_batch(
        [SimpleRecord(FIRST_TIMESTAMP, None, b"in a transaction")],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    partition.append(memoryview(begin))
    fetches = Fetches(partition)
    fetch = fetches.wait(1, read_committed=True)

    partition.append(batch())
    await asyncio.sleep(0)
    early = list(fetches.read)
    commit = EndTransactionMarker(ControlRecordType.COMMIT, coordinator_epoch=0)
    marker = commit.batch(FIRST_TIMESTAMP, producer_id=7, producer_epoch=0)
    partition.append(memoryview(marker), origin=AppendOrigin.COORDINATOR, transaction_version=0)
    await asyncio.sleep(0)

    assert ([], [fetch]) == (early, fetches.read)


async def test_read_committed_fetch_counts_bytes_without_an_open_transaction(
    partition: Partition,
) -> None:
    fetches = Fetches(partition)
    fetch = fetches.wait(150, read_committed=True)

    partition.append(batch(100))
    await asyncio.sleep(0)
    early = list(fetches.read)
    partition.append(batch(100))
    await asyncio.sleep(0)

    assert ([], [fetch]) == (early, fetches.read)


async def test_fetch_wakes_when_its_segment_is_rolled(partition: Partition) -> None:
    partition.append(batch())
    fetches = Fetches(partition)
    fetch = fetches.wait(1000)

    partition.log.roll()
    partition.append(batch())
    await asyncio.sleep(0)

    assert [fetch] == fetches.read


async def test_nothing_is_readable_before_its_fsync(partition: Partition, io: Executor) -> None:
    flush_after(partition, 1)
    fetches = Fetches(partition)
    fetch = fetches.wait(1)

    partition.append(batch())
    await asyncio.sleep(0)
    early = list(fetches.read)
    await io.run()

    assert ([], [fetch]) == (early, fetches.read)


async def test_all_waiting_fetches_can_be_woken(partition: Partition) -> None:
    fetches = Fetches(partition)
    waiting = {fetches.wait(1), fetches.wait(1)}

    fetches.purgatory.wake_all()
    await asyncio.sleep(0)

    assert waiting == set(fetches.read)
