"""
The groups of a broker, as a subject of crashes.

Clients send their requests to a broker on a disk that can crash. What the records of a group come
to is one state after the other; each request leads from one to the next, unless it says that it
does so in steps. The promises of a point are the states that a broker may have which starts from
it::

    states      s0 --- s1 --- s2 --- s3          of one log, by the records that are applied
                       |             |
                   committed    being written

A crash of the process loses nothing that was written: the broker has the last state that was
committed, and so may be answered for, or one that came after it. A crash of the machine may lose
what was not synced: the broker has one of the states before, for each of both logs, and never a
part of one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from threading import get_ident
from typing import Any, ClassVar, Final, TypeVar

from barnabas.coordination.cluster.topic_names import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import RecordBatch, batches
from barnabas.storage.directories.cleaner_checkpoint import CLEANER_CHECKPOINT
from barnabas.storage.directories.directory import (
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.uuids import uuid_text
from barnabas.testing.manual_clock import ManualClock
from tests.support.config_requests import SET, change
from tests.support.config_requests import TOPIC as TOPIC_RESOURCE
from tests.support.coordination import GROUP, Coordination
from tests.support.crash.group_checks import (
    ROUNDS,
    TOPIC,
    Deliveries,
    check_deliveries,
    check_going_on,
    check_known,
    loaded,
    shards_of,
    states_of,
)
from tests.support.crash.group_clients import GroupClient
from tests.support.crash.points import ALL, NONE, ImagePoint, Keep, Machine, Point, Subject
from tests.support.group_requests import coordinator_request
from tests.support.server import DATA, START_MS, TestBroker, running, until
from tests.support.wire_client import WireClient

T = TypeVar("T")

OPTIONS: Final = {
    "offsets_topic_num_partitions": "1",
    "share_coordinator_state_topic_num_partitions": "1",
    "group_consumer_assignment_interval_ms": "0",
    "group_share_assignment_interval_ms": "0",
    "group_streams_assignment_interval_ms": "0",
    "group_streams_initial_rebalance_delay_ms": "0",
    "group_streams_num_standby_replicas": "1",
    # Segments are compacted, or deleted, as soon as time passes.
    "share_coordinator_snapshot_update_records_per_snapshot": "2",
    "share_coordinator_state_topic_prune_interval_ms": "7000",
    "share_coordinator_cold_partition_snapshot_interval_ms": "11000",
    "log_retention_check_interval_ms": "13000",
    "log_segment_delete_delay_ms": "1000",
    "log_cleaner_min_cleanable_ratio": "0.0",
    "log_cleaner_delete_retention_ms": "0",
    "log_cleaner_dedupe_buffer_size": "3000000",
    # One thing after the other, so that there is an instant at which to look at the disk.
    "num_recovery_threads_per_data_dir": "1",
    "background_threads": "1",
}
SEGMENT_BYTES: Final = {GROUP_METADATA_TOPIC: 4000, SHARE_GROUP_STATE_TOPIC: 1000}
"""
Segments of some batches.
"""
DIRECTORIES: Final = tuple(f"{DATA}/{topic}-0/" for topic in SEGMENT_BYTES)
CHECKPOINTS: Final = frozenset(
    f"{DATA}/{name}"
    for name in (
        RECOVERY_POINT_CHECKPOINT,
        LOG_START_OFFSET_CHECKPOINT,
        CLEANER_CHECKPOINT,
    )
)
LOGS: Final = ("groups", "shares")
SMALL_TOPIC: Final = "u"


class History:
    """
    The states of one log, in their order.
    """

    def __init__(self, name: str, log: Log, first: Any) -> None:
        self.name = name
        self.states: list[Any] = [first]
        self._log = log
        self._ends = [log.log_end_offset]

    @property
    def last(self) -> int:
        return len(self.states) - 1

    @property
    def committed(self) -> int:
        """
        The last state whose records are committed, so that it may be answered for.
        """
        return bisect_right(self._ends, self._log.high_watermark) - 1

    def note(self, state: Any) -> None:
        """
        The state is this one now.
        """
        if state != self.states[-1]:
            self.states.append(state)
            self._ends.append(self._log.log_end_offset)


@dataclass(frozen=True, slots=True)
class Promise:
    """
    Which states of each log a broker may have that starts again.
    """

    histories: tuple[History, ...]
    committed: tuple[int, ...]
    """The states that were answered for, or the first ones if a crash may lose them."""
    loses_nothing: bool
    is_answer_lost: bool
    keep: Keep
    clients: tuple[GroupClient, ...]
    deliveries: Deliveries

    def check(self, found: Sequence[Any]) -> bool:
        """
        See whether a broker may have these states; return whether they are those that its clients
        were told last.
        """
        for history, state, first in zip(self.histories, found, self.committed, strict=True):
            assert state in history.states[first:], (
                f"the {history.name} are in no state from {first} on; they differ from this one "
                f"by {_differences(history.states[first], state)}"
            )
        return not self.is_answer_lost and all(
            state == history.states[first]
            for history, state, first in zip(self.histories, found, self.committed, strict=True)
        )


def _differences(one: Any, other: Any, path: str = "") -> list[str]:
    if one == other:
        return []
    if isinstance(one, dict) and isinstance(other, dict):
        return [
            each
            for key in {**one, **other}
            for each in _differences(one.get(key), other.get(key), f"{path}/{key}")
        ]
    return [f"{path}: {one!r} and {other!r}"]


class WatchedWire(WireClient):
    """
    A connection on which every other answer is an instant to crash at: its client does not get it.
    """

    life: GroupLife | None = None

    async def ask(self, request: Message, version: int) -> Any:
        answer = await super().ask(request, version)
        if self.life is not None:
            self.life.lose_answer()
        return answer


class GroupLife:
    """
    Clients of a broker, with an instant to crash at after each answer.

    Invariants:

    1. No record is appended between two looks at the states, unless the request that is under way
       has one batch of records only.
    """

    def __init__(
        self,
        broker: TestBroker,
        wire: WireClient,
        clock: ManualClock,
        machine: Machine[Promise],
        *,
        is_synced: bool,
    ) -> None:
        self.broker = broker
        self.wire = wire
        self.clients: list[GroupClient] = []
        self.deliveries = Deliveries()
        self._clock = clock
        self._is_synced = is_synced
        self._is_in_steps = False
        self._is_answer_lost = False
        self._thread = get_ident()
        self._logs = [shard.log.partition.log for shard in shards_of(broker)]
        self._replayed = Coordination().state
        self._replayed_end = 0
        self._histories = tuple(map(History, LOGS, self._logs, states_of(broker)))
        self.watch = machine.watch(
            clock.now_ms, self._promised, key=lambda promise: promise.committed
        )

    def _promised(self, keep: Keep) -> Promise:
        # Records are appended and applied in this thread only.
        if self._is_in_steps and get_ident() == self._thread:
            self._note()
        loses_nothing = keep.loses_nothing or self._is_synced
        return Promise(
            self._histories,
            tuple(each.committed if loses_nothing else 0 for each in self._histories),
            loses_nothing,
            self._is_answer_lost,
            keep,
            tuple(client.copied() for client in self.clients),
            self.deliveries.copied(),
        )

    @property
    def _last(self) -> tuple[int, ...]:
        return tuple(history.last for history in self._histories)

    def _note(self) -> None:
        for batch in self._batches_from(0, self._replayed_end):
            self._replayed.replay(batch)
            self._replayed_end = batch.next_offset
        for history, state in zip(
            self._histories, states_of(self.broker, self._replayed), strict=True
        ):
            history.note(state)

    # What clients do

    async def see(self, request: Awaitable[T], *, appends: int = 1) -> T:
        """
        Await the answer to a request.

        Args:
            appends: how many batches of records it may write. Of one batch, nobody may ever see a
                part.
        """
        ends = [log.log_end_offset for log in self._logs]
        self._is_in_steps = appends > 1
        answer = await request
        self._settled("after an answer")
        if appends == 1:
            assert all(history.committed == history.last for history in self._histories)
        # What the request has begun beside it.
        self._is_in_steps = True
        assert self.broker.parts is not None
        topics = self.broker.parts.coordinators.streams_topics
        await until(lambda: not topics._begun)
        await self._clock.pass_time(0)
        self._is_in_steps = False
        self._settled("after what follows an answer")
        if appends > 1:
            found = sum(len(self._batches_from(log, end)) for log, end in enumerate(ends))
            assert found <= appends, f"{found} batches"
        return answer

    def _batches_from(self, log: int, offset: int) -> list[RecordBatch]:
        found = self._logs[log].read(offset, 1 << 20, FetchIsolation.LOG_END, True).records
        return [] if found is None else [*batches(found.read())]

    def lose_answer(self) -> None:
        """
        Have an instant at which an answer is on its way, if it tells of a state with an odd number.
        """
        self._note()
        if sum(self._last) % 2:
            self._is_answer_lost = True
            self.watch.look("before an answer arrives")
            self._is_answer_lost = False

    async def pass_time(self, seconds: float) -> None:
        """
        Let time pass, and what is done in it.
        """
        self._is_in_steps = True
        await self._clock.pass_time(seconds)
        self._is_in_steps = False
        self._settled("after some time")

    def _settled(self, instant: str) -> None:
        self._note()
        self.watch.look(instant)

    # Members

    async def beat(self, client: GroupClient) -> ErrorCode:
        return await self.see(client.beat(self.wire), appends=client.appends)

    async def join(self, *clients: GroupClient) -> None:
        """
        Let clients become members.
        """
        for client in clients:
            code = await self.beat(client)
            assert ErrorCode.NONE is code, f"{client} is told {code.name}"
            self.clients.append(client)
            self.watch.look("after the answer was noted")

    async def settle(self) -> None:
        """
        Let all members send heartbeats until these change nothing any more.
        """
        for _ in range(ROUNDS):
            before = [client.knowledge for client in self.clients], self._last
            codes = {await self.beat(client) for client in self.clients}
            assert codes <= {ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS}, codes
            after = [client.knowledge for client in self.clients], self._last
            if before == after and codes <= {ErrorCode.NONE}:
                return
        raise AssertionError(f"{self.clients} do not settle")

    async def end(self, client: GroupClient, leaving: Awaitable[ErrorCode] | None = None) -> None:
        """
        Let a member leave, for ever by default.
        """
        self.clients.remove(client)
        if leaving is None:
            leaving = client.leave(self.wire)
        assert ErrorCode.NONE is await self.see(leaving), client


Workload = Callable[[GroupLife], Awaitable[None]]
Newcomer = Callable[[str], GroupClient]


class Groups(Subject[Promise]):
    """
    The groups of one workload.

    Args:
        newcomer: makes a client that joins the group after a crash.
        is_synced: whether each append is synced, so that a crash of the machine loses nothing.
        stride: of the points at which some part is kept, every so many-th is taken.
    """

    second_crashes: ClassVar = (4, 8)

    def __init__(
        self, workload: Workload, newcomer: Newcomer, *, is_synced: bool, stride: int = 1
    ) -> None:
        synced = ", synced" if is_synced else ""
        self.name = f"groups ({workload.__name__}{synced})"
        self._workload = workload
        self._newcomer = newcomer
        self._is_synced = is_synced
        self._stride = stride
        self._options = {**OPTIONS, **({"log_flush_interval_messages": "1"} if is_synced else {})}

    async def live(self, machine: Machine[Promise]) -> None:
        clock = ManualClock(START_MS)
        async with running(machine.files, clock, **self._options) as broker:
            await prepare(broker)
            async with await WatchedWire.open(broker.port) as wire:
                life = GroupLife(broker, wire, clock, machine, is_synced=self._is_synced)
                wire.life = life
                await self._workload(life)
                # The clean stop that follows is not the clients' affair.
                life.watch.end()

    async def recover(self, machine: Machine[Promise], point: Point[Promise]) -> None:
        clock = ManualClock(point.now_ms)
        watch = machine.watch(clock.now_ms, lambda keep: point.promised)
        async with running(machine.files, clock, **self._options) as broker:
            await loaded(broker)
            watch.look("after the groups were loaded")
            watch.end()

    def different(self, points: list[ImagePoint[Promise]]) -> list[ImagePoint[Promise]]:
        return different(points, self._stride)

    async def check(self, point: Point[Promise], *, lives: int, thoroughly: bool) -> None:
        """
        The broker has a state that it may have; *thoroughly*, or after a lost answer, the members
        of the group go on, and so does one that joins now.
        """
        clock = ManualClock(point.now_ms)
        promise = point.promised
        async with running(point.last_files(), clock, **self._options) as broker:
            await loaded(broker)
            is_as_told = promise.check(states_of(broker))
            if not (thoroughly or promise.is_answer_lost):
                return
            clients = [client.disconnected() for client in promise.clients]
            async with await broker.client() as wire:
                if promise.loses_nothing:
                    await check_known(wire, clients, is_as_told=is_as_told)
                clients.append(self._newcomer("newcomer"))
                await check_going_on(broker, wire, clock, clients)
                told = promise.deliveries if promise.loses_nothing else None
                await check_deliveries(broker, wire, told)


def different(points: Iterable[ImagePoint[Promise]], stride: int) -> list[ImagePoint[Promise]]:
    """
    The first of those points that do not differ in what a coordinator depends on, and of those that
    keep some part every *stride*-th.
    """
    found: dict[object, ImagePoint[Promise]] = {}
    for point in points:
        files = frozenset(
            (name, file.content)
            for name, file in point.image.files.items()
            if name in CHECKPOINTS or name.startswith(DIRECTORIES)
        )
        found.setdefault((point.promised.committed, files), point)
    parts = count()
    return [
        point
        for point in found.values()
        if point.promised.keep in {NONE, ALL} or next(parts) % stride == 0
    ]


async def prepare(broker: TestBroker) -> None:
    """
    Make the topics of records, and those of the coordinators.
    """
    await broker.create(TOPIC, 2, flush_messages="1")
    await broker.create(SMALL_TOPIC, 1, flush_messages="1")
    share_partition = f"{GROUP}:{uuid_text(await broker.topic_id(TOPIC))}:0"
    async with await broker.client() as wire:
        for key, key_type in ((GROUP, 0), (share_partition, 2)):
            answer = await wire.ask(coordinator_request(key, key_type=key_type), 6)
            assert 0 == answer.coordinators[0].error_code
        for topic, size in SEGMENT_BYTES.items():
            request = change(TOPIC_RESOURCE, topic, ("internal.segment.bytes", SET, str(size)))
            answer = await wire.ask(request, 1)
            assert 0 == answer.responses[0].error_code, answer
