"""
A share-partition that is driven by lines of text, as Kafka's is by ``SharePartitions.java``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count

from barnabas.coordination.share.aborted import aborted_batches, without_aborted
from barnabas.coordination.share.acknowledging import Acknowledgement, Acknowledging, StateChange
from barnabas.coordination.share.acquiring import AcquireRequest, acquire
from barnabas.coordination.share.in_flight import InFlightBatch
from barnabas.coordination.share.window import ShareWindow
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.internal_topics.share_state_records import StateBatch
from barnabas.protocol.records.batch import build_batch_with_offsets
from barnabas.protocol.records.record import Record
from barnabas.storage.segment.fetch_data import AbortedTransaction
from barnabas.storage.segment.fetched_batches import FetchedBatch

LOCK_MS = 10_000


class DrivenPartition:
    """
    Ours: takes a command, and says what it gave, what it writes, and the state afterwards.
    """

    def __init__(self) -> None:
        self.window = ShareWindow(0)
        self.now_ms = 0
        self.max_in_flight = 0
        self.max_delivery_count = 0
        self.log: list[str] = []
        self.changes: list[StateChange] = []
        self.fetched: dict[str, list[FetchedBatch]] = {}

    def run(self, line: str) -> str:
        name, *words = line.split(" ")
        self.log = []
        commands: dict[str, Callable[..., str]] = {
            "new": self._new,
            "acquire": self._acquire,
            "ack": self._acknowledge,
            "release": self._release,
            "start": self._start,
            "time": self._time,
            "written": self._written,
        }
        answer = commands[name](*words)
        return f"{answer} | {','.join(self.log)} | {self.state()}"

    def _new(self, start: str, max_in_flight: str, max_delivery_count: str, *stored: str) -> str:
        self.now_ms = 0
        self.changes = []
        self.max_in_flight = int(max_in_flight)
        self.max_delivery_count = int(max_delivery_count)
        batches = [
            StateBatch(
                first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
            )
            for first, last, state, count in (map(int, each.split(":")) for each in stored)
        ]
        self.window = ShareWindow(int(start), batches)
        return "ok"

    def _acquire(self, *words: str) -> str:
        member, mode, size, most, offset, data, *aborted = words
        request = AcquireRequest(
            member_id=member,
            max_records=int(most),
            batch_size=int(size),
            is_record_limit=mode == "1",
            max_in_flight=self.max_in_flight,
            max_delivery_count=self.max_delivery_count,
            lock_until=self.now_ms + LOCK_MS,
        )
        batches = self.fetched[data]
        acquired = acquire(self.window, request, int(offset), batches)
        transactions = [
            AbortedTransaction(*map(int, each.split(":"))) for each in aborted if acquired
        ]
        left = without_aborted(self.window, acquired, aborted_batches(batches, transactions))
        parts = (f"{each.first_offset}:{each.last_offset}:{each.delivery_count}" for each in left)
        return f"acquired {','.join(parts)}"

    def _acting(self, member: str) -> Acknowledging:
        return Acknowledging(
            self.window,
            member,
            max_delivery_count=self.max_delivery_count,
            lock_until=self.now_ms + LOCK_MS,
        )

    def _acknowledge(self, member: str, *batches: str) -> str:
        those = [
            Acknowledgement(int(first), int(last), [*map(int, types)])
            for first, last, types in (each.split(":") for each in batches)
        ]
        try:
            return self._changed(self._acting(member).acknowledge(those, self.now_ms))
        except KafkaError as error:
            return f"error:{error.code}"

    def _release(self, member: str) -> str:
        return self._changed(self._acting(member).release())

    def _changed(self, change: StateChange) -> str:
        if not change.batches:
            return "ok"
        window = self.window
        text = f"{window.start_offset}/{window.delivery_complete_count}"
        for batch in change.batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                text += f"/{offset}:{int(batch.delivery_state)}:{batch.delivery_count}"
        self.log.append(text)
        self.changes.append(change)
        return "writing"

    def _start(self, offset: str) -> str:
        if int(offset) > self.window.start_offset:
            self.window.follow_log_start(int(offset))
        return "ok"

    def _time(self, passed_ms: str) -> str:
        self.now_ms += int(passed_ms)
        self._changed(self._acting("").end_locks(self.now_ms))
        return "ok"

    def _written(self, is_written: str) -> str:
        changes, self.changes = self.changes, []
        for change in changes:
            change.complete(is_written=is_written == "1", now_ms=self.now_ms)
        return "ok"

    def state(self) -> str:
        window = self.window
        offsets = (
            window.next_fetch_offset(),
            window.start_offset,
            window.end_offset,
            window.delivery_complete_count,
        )
        return " ".join([*map(str, offsets), *map(_text, window.batches)])


def _text(batch: InFlightBatch) -> str:
    if not batch.is_tracked:
        run = batch.whole
        mark = "*" * (run.rollback is not None)
        return (
            f"[{run.first_offset}-{run.last_offset} {int(run.state)} {run.delivery_count}"
            f" {run.member_id}{mark}]"
        )
    text = "".join(
        f"({offset} {int(run.state)} {run.delivery_count} {run.member_id}"
        f"{'*' * (run.rollback is not None)})"
        for run in batch.runs
        for offset in range(run.first_offset, run.last_offset + 1)
    )
    return f"{{{text}}}"


class RandomScript:
    """
    Commands for a share-partition, chosen by what it has in flight.
    """

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.ours = DrivenPartition()
        self.log: list[tuple[FetchedBatch, bytes]] = []
        self.log_start = 0

    def commands(self, length: int) -> Iterator[str]:
        choose = self.choose
        self._make_log()
        yield self._new()
        actions = {
            self._acquire: 8,
            self._acknowledge: 8,
            self._written: 6,
            self._release: 1,
            self._time: 2,
            self._start: 0.3,
        }
        for _ in range(length):
            (action,) = choose.choices([*actions], [*actions.values()])
            line = action()
            if line:
                yield line
            if self._is_start_lost():
                return

    def _is_start_lost(self) -> bool:
        """
        Whether the start is in no batch that is in flight: from then on Kafka may look for its
        state in vain, and does not move it any more.
        """
        window = self.ours.window
        floor = window.floor(window.start_offset)
        return floor is not None and floor.last_offset < window.start_offset

    def _make_log(self) -> None:
        """
        Batches with gaps, some of them in transactions of two producers.
        """
        choose = self.choose
        offset = choose.choice([0, 0, 7])
        for number in count():
            if number == 200:
                return
            size = choose.choice([1, 1, 3, 5, 10])
            if choose.random() < 0.1:
                offset += choose.randrange(1, 6)
            producer_id = choose.choice([-1, -1, -1, 5, 6])
            is_marker = producer_id >= 0 and choose.random() < 0.2
            last = offset if is_marker else offset + size - 1
            if is_marker:
                key = choose.choice([b"\0\0\0\0", b"\0\0\0\1"])
                records = [Record(offset, 1, key, b"\0\0\0\0\0\0", ())]
            else:
                records = [Record(each, 1, None, b"v", ()) for each in sorted({offset, last})]
            fetched = FetchedBatch(
                offset,
                last,
                producer_id=producer_id,
                is_transactional=producer_id >= 0,
                is_abort_marker=is_marker and records[0].key == b"\0\0\0\0",
            )
            data = build_batch_with_offsets(
                records,
                base_offset=offset,
                producer_id=producer_id,
                producer_epoch=0 if producer_id >= 0 else -1,
                base_sequence=-1 if is_marker or producer_id < 0 else 0,
                is_transactional=producer_id >= 0,
                is_control=is_marker,
            )
            self.log.append((fetched, bytes(data)))
            offset = last + 1

    def _new(self) -> str:
        choose = self.choose
        start = self.log[0][0].base_offset + choose.choice([0, 0, 2])
        stored, offset = [], start
        for _ in range(choose.choice([0, 0, 1, 4])):
            offset += choose.choice([0, 0, 3])
            last = offset + choose.randrange(5)
            stored.append(f"{offset}:{last}:{choose.choice([0, 0, 2, 4])}:{choose.randrange(1, 4)}")
            offset = last + 1
        limits = f"{choose.choice([20, 100])} {choose.choice([2, 3, 5, 10])}"
        return " ".join([f"new {start} {limits}", *stored])

    def _acquire(self) -> str:
        choose = self.choose
        offset = self.ours.window.next_fetch_offset()
        index = next(
            (at for at, (batch, _) in enumerate(self.log) if batch.last_offset >= offset), None
        )
        if index is None or not self.ours.window.can_acquire(self.ours.max_in_flight):
            return ""
        if self.log[index][0].base_offset > max(offset, self.ours.window.end_offset):
            return ""  # Kafka may acquire a batch whose last offset is below its first.
        read = self.log[index : index + choose.choice([1, 2, 5, 10])]
        data = b"".join(each for _, each in read).hex()
        self.ours.fetched[data] = [batch for batch, _ in read]
        aborted = []
        if choose.random() < 0.3:
            aborted.append(f"{choose.choice([5, 6])}:{offset - choose.randrange(3)}")
        member, mode = choose.choice("ab"), choose.choice([0, 0, 1])
        size, most = choose.choice([1, 4, 100]), choose.choice([1, 3, 10, 100])
        return " ".join([f"acquire {member} {mode} {size} {most} {offset} {data}", *aborted])

    def _acknowledge(self) -> str:
        choose = self.choose
        window = self.ours.window
        acquired = [run for batch in window.batches for run in batch.runs if run.state == 1]
        if not acquired or choose.random() < 0.1:
            first = max(0, window.start_offset + choose.randrange(-5, 30))
            return self._ack(choose.choice("ab"), [(first, first + choose.randrange(8))])
        at = choose.randrange(len(acquired))
        run = acquired[at]
        first, last = run.first_offset, run.last_offset
        ranges = [(first, last)]
        kind = choose.random()
        if kind < 0.3:
            first = choose.randint(first, last)
            ranges = [(first, choose.randint(first, last))]
        elif kind < 0.5:
            more = acquired[at : at + choose.randrange(1, 5)]
            ranges = [(first, more[-1].last_offset)]
        elif kind < 0.7:
            more = acquired[at : at + choose.randrange(1, 5)]
            ranges = [(each.first_offset, each.last_offset) for each in more]
        return self._ack(run.member_id if choose.random() < 0.95 else "c", ranges)

    def _ack(self, member: str, ranges: list[tuple[int, int]]) -> str:
        choose = self.choose
        words = []
        for first, last in ranges:
            types = choose.choice("1112223304")
            if choose.random() < 0.2:
                types = "".join(choose.choices("11223304", k=last - first + 1))
            words.append(f"{first}:{last}:{types}")
        return " ".join([f"ack {member}", *words])

    def _written(self) -> str:
        return f"written {int(self.choose.random() < 0.85)}"

    def _release(self) -> str:
        return f"release {self.choose.choice('ab')}"

    def _time(self) -> str:
        return f"time {self.choose.choice([1000, 4000, 11000])}"

    def _start(self) -> str:
        if self.ours.changes:
            return ""  # Kafka forgets that a batch is being written when it has to divide it.
        offset = self.ours.window.start_offset + self.choose.randrange(1, 12)
        left = [each for each in self.log if each[0].last_offset >= offset]
        if not left or left[0][0].base_offset > offset:
            return ""  # Kafka does not find the state of an offset between batches.
        self.log = left
        return f"start {offset}"
