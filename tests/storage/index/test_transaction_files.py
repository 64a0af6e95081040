"""
Logs with any mixture of transactions: whatever happens to them, what is known of transactions is
what their batches say.

The model is a list of batches; what a log should know at some offset is found by going through the
batches below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.records.batch import RecordBatch, batches
from barnabas.protocol.records.control import ControlRecordType
from barnabas.storage.index.txn_index import AbortedTxn
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.testing.disks.crashable import CrashableFiles
from tests.support.logs import LogHome, begin_transaction, end_transaction, produce
from tests.support.segments import aborted_txns

PRODUCERS = (11, 12, 13)


@dataclass
class Known:
    """
    What follows from some batches: open transactions by producer, aborted ones, records that count.
    """

    opened: dict[int, int] = field(default_factory=dict)
    aborted: list[AbortedTxn] = field(default_factory=list)
    committed: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Sent:
    """
    A batch as it was sent; ``ends`` is None for records, or whether a marker commits.
    """

    first: int
    count: int
    producer_id: int
    ends: bool | None = None

    @property
    def end(self) -> int:
        return self.first + self.count


def known(sent: Sequence[Sent], end: int) -> Known:
    """
    What the batches below *end* say.
    """
    found = Known()
    pending: dict[int, list[int]] = {}
    for one in sent:
        if one.end > end:
            break
        offsets = list(range(one.first, one.end))
        if one.ends is None:
            if one.producer_id < 0:
                found.committed += offsets
            else:
                found.opened.setdefault(one.producer_id, one.first)
                pending.setdefault(one.producer_id, []).extend(offsets)
            continue
        first = found.opened.pop(one.producer_id, None)
        records = pending.pop(one.producer_id, [])
        if one.ends:
            found.committed += records
        elif first is not None:
            stable = min(found.opened.values(), default=one.first + 1)
            found.aborted.append(AbortedTxn(one.producer_id, first, one.first, stable))
    found.committed.sort()
    return found


class World:
    def __init__(self) -> None:
        self.files = CrashableFiles()
        self.home = LogHome(
            files=self.files, segment_bytes=400, index_interval_bytes=150, segment_index_bytes=1200
        )
        self.log = self.home.open()
        self.sent: list[Sent] = []
        self._sequences = dict.fromkeys(PRODUCERS, 0)

    def do(self, step: tuple[Any, ...]) -> None:
        kind, *rest = step
        first = self.log.log_end_offset
        if kind == "roll":
            self.log.roll()
        elif kind == "plain":
            produce(self.log, *[b"v"] * rest[0])
            self.sent.append(Sent(first, rest[0], -1))
        elif kind == "records":
            producer_id, count = rest
            sequence = self._sequences[producer_id]
            begin_transaction(self.log, producer_id, sequence=sequence, count=count)
            self._sequences[producer_id] += count
            self.sent.append(Sent(first, count, producer_id))
        else:
            end_transaction(self.log, rest[0], commit=kind == "commit")
            self.log.update_high_watermark(self.log.log_end_offset)
            self.sent.append(Sent(first, 1, rest[0], kind == "commit"))

    def check(self) -> None:
        log, end, start = self.log, self.log.log_end_offset, self.log.log_start_offset
        expected = known(self.sent, end)
        unstable = min(expected.opened.values(), default=None)
        stable = end if unstable is None else unstable
        if stable < start:
            # Where the batch begins that the start lies in (Kafka's LogSegment.read).
            around = [one.first for one in self.sent if one.first <= start < one.end]
            stable = around[0] if around else start
        assert stable == log.last_stable_offset
        told = {p.producer_id: p.current_txn_start_offset for p in log.active_producers()}
        assert expected.opened == {p: offset for p, offset in told.items() if offset >= 0}
        indexed = [
            entry for segment in log.segments.values() for entry in aborted_txns(segment.txn_index)
        ]
        assert expected.aborted == indexed
        readable = [offset for offset in expected.committed if start <= offset < stable]
        for max_bytes in (1, 250, 1 << 20):
            assert readable == list(committed(log, start, max_bytes))


def committed(log: Log, offset: int, max_bytes: int) -> Iterator[int]:
    """
    The offsets of the records that a consumer delivers who reads committed records only, as
    Kafka's does: records of a producer do not count from where its aborted transaction begins
    until the marker of it.
    """
    while offset < log.last_stable_offset:
        info = log.read(offset, max_bytes, FetchIsolation.TXN_COMMITTED, True)
        if info.records is None:
            return  # A crash took all records from here to the end.
        assert info.aborted_transactions is not None
        pending = sorted(info.aborted_transactions, key=lambda each: each.first_offset)
        aborting: set[int] = set()
        for batch in batches(info.records.read()):
            if batch.last_offset < offset:
                continue
            while pending and pending[0].first_offset <= batch.last_offset:
                aborting.add(pending.pop(0).producer_id)
            if is_abort(batch):
                aborting.discard(batch.producer_id)
            elif not batch.is_control and batch.producer_id not in aborting:
                yield from range(max(batch.base_offset, offset), batch.next_offset)
            offset = batch.next_offset


def is_abort(batch: RecordBatch) -> bool:
    if not batch.is_control:
        return False
    [record] = batch.records()
    return ControlRecordType.of(record.key) is ControlRecordType.ABORT


producers = st.sampled_from(PRODUCERS)
counts = st.integers(1, 3)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("records"), producers, counts),
        st.tuples(st.just("records"), producers, counts),
        st.tuples(st.just("commit"), producers),
        st.tuples(st.just("abort"), producers),
        st.tuples(st.just("abort"), producers),
        st.tuples(st.just("plain"), counts),
        st.tuples(st.just("roll")),
    ),
    max_size=25,
)


def world_of(*parts: Sequence[tuple[Any, ...]]) -> World:
    world = World()
    for part in parts:
        for step in part:
            world.do(step)
    return world


def flush(home: LogHome, log: Log) -> None:
    log.flush()
    home.checkpoint(log)


def nothing(home: LogHome, log: Log) -> None: ...


@given(steps)
def test_transaction_files_are_correct_after_every_operation(
    some: Sequence[tuple[Any, ...]],
) -> None:
    world = World()
    for step in some:
        world.do(step)
        world.check()


@pytest.mark.parametrize("stop", [LogHome.stop, flush, nothing])
@given(before=steps, after=steps)
def test_transaction_files_survive_a_restart_and_a_kill(
    stop: Callable[[LogHome, Log], None], before: Any, after: Any
) -> None:
    world = world_of(before)
    stop(world.home, world.log)

    world.log = world.home.open()

    world.check()
    for step in after:
        world.do(step)
    world.check()


@settings(max_examples=150)
@given(steps, steps, st.randoms(use_true_random=False))
def test_transaction_files_match_the_log_after_a_machine_crash(
    before: Any, behind: Any, random: Any
) -> None:
    """
    Synced data is there, and any part of the rest: the log may go on behind records that were lost.
    """
    world = world_of(before)
    world.log.flush(force_flush_active_segment=True)
    world.home.checkpoint(world.log)
    synced = world.log.log_end_offset
    for step in behind:
        world.do(step)

    world.files.crash(lambda most: random.randint(0, most))
    world.log = world.home.open()

    assert world.log.log_end_offset >= synced
    stored = {
        batch.base_offset
        for segment in world.log.segments.values()
        for batch in segment.log.batches()
    }
    assert all(one.first in stored for one in world.sent if one.first < synced)
    world.sent = [one for one in world.sent if one.first in stored]
    world.check()


@given(steps, st.data())
def test_truncation_reopens_transactions_whose_markers_are_removed(
    before: Any, data: st.DataObject
) -> None:
    """
    Transactions that began behind the truncation point are forgotten.
    """
    world = world_of(before)
    ends = [0, *[one.end for one in world.sent]]
    target = data.draw(st.sampled_from(ends))

    world.log.truncate_to(target)

    world.sent = [one for one in world.sent if one.end <= target]
    world.log.update_high_watermark(target)
    world.check()
    world.home.stop(world.log)
    world.log = world.home.open()
    world.check()


@given(steps, st.data())
def test_open_transaction_below_the_new_log_start_counts_from_there(
    before: Any, data: st.DataObject
) -> None:
    world = world_of(before)
    start = data.draw(st.integers(0, world.log.log_end_offset))

    world.log.delete_records(start)

    world.check()
