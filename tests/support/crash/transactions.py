"""
The transactions of a broker, as a subject of crashes.

One producer sends its requests, in one protocol or the other, to a broker on a disk that can crash.
The promises of a point are what the producer had asked for and been answered by then. The broker
that starts from a point is checked by a reader, by the next producer with the same id, and by the
one before, which has to be fenced.

Every append is synced (``log.flush.interval.messages`` is 1), so that what is promised holds
whatever a crash keeps.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from barnabas.coordination.coordinator_runtime.producer import ProducerIdAndEpoch
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import ErrorCode
from barnabas.testing.manual_clock import ManualClock
from tests.support.crash.points import Lookout, Machine, Point, Subject
from tests.support.server import START_MS, TestBroker, running
from tests.support.transactional_client import Client, prepare
from tests.support.wire_client import WireClient

PARTITIONS: Final = (0, 1)
FIRST_OFFSET: Final = 10
"""
The offset that the first transaction commits for the group; each one after it, one more.
"""
NO_OFFSET: Final = -1
OPTIONS: Final = {
    "transaction_state_log_num_partitions": "1",
    "offsets_topic_num_partitions": "1",
    "log_flush_interval_messages": "1",
    # One thing after the other, so that there is an instant at which to look at the disk.
    "num_recovery_threads_per_data_dir": "1",
    "background_threads": "1",
}
TRIES: Final = 60_000
"""
How often, a millisecond apart, a coordinator is asked that is at work in another thread.
"""
ASK_AGAIN: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    }
)

Shown = tuple[tuple[str, ...], ...]
"""
What a reader has seen of each partition.
"""


@dataclass(frozen=True, slots=True)
class Progress:
    """
    How far a producer has come.
    """

    producer: ProducerIdAndEpoch | None = None
    """Who it is, by the last answer that says so."""
    sequences: tuple[tuple[int, int], ...] = ()
    ends: tuple[bool, ...] = ()
    """Of each transaction whose end was asked for, whether it was to be committed."""
    acknowledged: int = 0
    """How many of them were said to have ended."""
    shown: Shown = ((),) * len(PARTITIONS)
    """What somebody has read, and must not be gone."""

    @property
    def outcomes(self) -> list[list[int]]:
        """
        Which transactions may turn out to be committed: those, or those, and nothing between.
        """
        known = [number for number in range(self.acknowledged) if self.ends[number]]
        undecided = range(self.acknowledged, len(self.ends))
        return [known, *([*known, number] for number in undecided if self.ends[number])]


NO_PROGRESS: Final = Progress()


class Production:
    """
    What one producer does, with an instant to crash at after each answer.
    """

    def __init__(
        self,
        machine: Machine[Progress],
        clock: ManualClock,
        progress: Progress = NO_PROGRESS,
    ) -> None:
        self.progress = progress
        self.watch = machine.watch(clock.now_ms, lambda keep: self.progress, key=lambda p: p)

    def note(self, **changes: Any) -> None:
        """
        The producer has come further.
        """
        self.progress = replace(self.progress, **changes)


class _WatchedWire(WireClient):
    """
    A connection on which each answer is an instant to crash at.
    """

    watch: Lookout | None = None

    async def ask(self, request: Message, version: int) -> Any:
        answer = await super().ask(request, version)
        if self.watch is not None:
            self.watch.look(f"after {type(request).__name__} was answered")
        return answer


class Transactions(Subject[Progress]):
    """
    Transactions in one protocol that end one after the other: true in *ends* is a commit.
    """

    second_crashes: ClassVar = (4, 20)

    def __init__(self, protocol: int, *ends: bool) -> None:
        self.name = f"transactions (protocol {protocol}, ends {ends})"
        self._protocol = protocol
        self._ends = ends

    async def live(self, machine: Machine[Progress]) -> None:
        clock = ManualClock(START_MS)
        async with running(machine.files, clock, **OPTIONS) as broker:
            await prepare(broker, len(PARTITIONS))
            async with await _WatchedWire.open(broker.port) as wire:
                production = Production(machine, clock)
                wire.watch = production.watch
                await self._run(Client(wire, self._protocol), production)
                # The clean stop that follows is not the producer's affair.
                production.watch.end()

    async def _run(self, client: Client, production: Production) -> None:
        assert ErrorCode.NONE is await client.init()
        production.note(producer=client.producer, sequences=tuple(client.sequences.items()))
        for number, commit in enumerate(self._ends):
            await transact(client, number, commit=commit, production=production)

    async def recover(self, machine: Machine[Progress], point: Point[Progress]) -> None:
        """
        Until the next producer has its answer.
        """
        clock = ManualClock(point.now_ms)
        production = Production(machine, clock, point.promised)
        async with (
            running(machine.files, clock, **OPTIONS) as broker,
            await broker.client() as wire,
        ):
            client = Client(wire, self._protocol)
            production.note(shown=await _shown(client))
            await _initialize(client, clock)
            production.note(producer=client.producer, shown=await _shown(client))
            production.watch.look("after the answer was noted")
            production.watch.end()

    async def check(self, point: Point[Progress], *, lives: int, thoroughly: bool) -> None:
        """
        The broker has all of a transaction or nothing, and its id continues; *thoroughly*, also
        where the transaction's time runs out before the next producer comes.
        """
        for by_timeout in {False, thoroughly and lives == 1}:
            clock = ManualClock(point.now_ms)
            async with running(point.last_files(), clock, **OPTIONS) as broker:
                await check_going_on(
                    broker, clock, self._protocol, point.promised, by_timeout=by_timeout
                )


async def transact(client: Client, number: int, *, commit: bool, production: Production) -> None:
    """
    Say all that belongs to one transaction, and note how far that has come.
    """
    for partition in PARTITIONS:
        assert ErrorCode.NONE is await client.produce(str(number), partition)
        production.note(sequences=tuple(client.sequences.items()))
    assert ErrorCode.NONE is await client.commit_offset(FIRST_OFFSET + number)
    production.note(ends=(*production.progress.ends, commit))
    assert ErrorCode.NONE is await client.end(commit=commit)
    production.note(
        acknowledged=production.progress.acknowledged + 1,
        producer=client.producer,
        sequences=tuple(client.sequences.items()),
    )
    production.watch.look("after the answer was noted")


# What has to be true


async def check_going_on(
    broker: TestBroker,
    clock: ManualClock,
    protocol: int,
    progress: Progress,
    *,
    by_timeout: bool = False,
) -> None:
    """
    Check a broker that runs after the *progress* of a producer.

    Args:
        by_timeout: let the transaction's time pass before the next producer comes.
    """
    async with await broker.client() as wire:
        client = Client(wire, protocol)
        shown = _longer(progress.shown, await _shown(client))
        if by_timeout:
            await _let_time_out(client, clock)
            await _check_outcome(client, progress, shown)
        await _initialize(client, clock)
        committed = await _check_outcome(client, progress, shown)
        if progress.producer is not None:
            assert client.producer.producer_id == progress.producer.producer_id
            assert client.producer.producer_epoch > progress.producer.producer_epoch
            await _check_fenced(wire, protocol, progress)
        await _check_next(client, clock, committed)


def _longer(one: Shown, other: Shown) -> Shown:
    assert all(b[: len(a)] == a for a, b in zip(one, other, strict=True)), "what was read is gone"
    return other


async def _shown(client: Client) -> Shown:
    """
    What a reader sees at once, whether or not the coordinators are there already.
    """
    return tuple([tuple((await client.read(partition))[0]) for partition in PARTITIONS])


async def _wait_until_loaded(client: Client) -> None:
    """
    Return once both coordinators have read their logs, which no clock of ours can hasten.
    """
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    for _ in range(TRIES):
        codes = (await client.describe()).error_code, (await client.committed_offset())[1]
        if loading not in codes:
            return
        await asyncio.sleep(0.001)
    raise TimeoutError("a coordinator does not come to the end of its log")


async def _initialize(client: Client, clock: ManualClock) -> None:
    await _wait_until_loaded(client)
    for _ in range(TRIES):
        code = await client.init()
        if code not in ASK_AGAIN:
            assert ErrorCode.NONE is code
            return
        # Some things are tried again a little later.
        clock.advance(0.05)
        await asyncio.sleep(0.001)
    raise AssertionError(f"the next producer is told {code.name} again and again")


async def _let_time_out(client: Client, clock: ManualClock) -> None:
    await _wait_until_loaded(client)
    for _ in range(TRIES):
        found = await client.describe()
        if found.transaction_state in ("", "Empty", "CompleteCommit", "CompleteAbort"):
            return
        clock.advance(1)
        await asyncio.sleep(0.001)
    raise AssertionError(f"time does not end what is {found.transaction_state}")


async def _check_outcome(client: Client, progress: Progress, shown: Shown) -> list[int]:
    """
    Records and offsets tell of the same transactions; of which, is returned.
    """
    seen = await _shown(client)
    assert [one[: len(before)] for one, before in zip(seen, shown, strict=True)] == list(shown)
    committed = [int(value) for value in seen[0]]
    assert len(set(seen)) == 1, f"half of a transaction: {seen}"
    assert committed in progress.outcomes
    expected = FIRST_OFFSET + committed[-1] if committed else NO_OFFSET
    assert (expected, ErrorCode.NONE) == await client.committed_offset()
    await _check_stable(client)
    return committed


async def _check_stable(client: Client) -> None:
    for partition in PARTITIONS:
        found = await client.fetch(partition)
        assert found.high_watermark == found.last_stable_offset, "a transaction hangs"


async def _check_fenced(wire: WireClient, protocol: int, progress: Progress) -> None:
    assert progress.producer is not None
    old = Client(wire, protocol)
    old.producer = progress.producer
    old.sequences |= dict(progress.sequences)  # none, where it crashed before the first record
    for partition in PARTITIONS:
        assert ErrorCode.NONE is not await old.produce_only("late", partition)
    assert ErrorCode.PRODUCER_FENCED is await old.end(commit=True)


async def _check_next(client: Client, clock: ManualClock, committed: list[int]) -> None:
    for partition in PARTITIONS:
        assert ErrorCode.NONE is await client.produce("next", partition)
    assert ErrorCode.NONE is await client.commit_offset(99)
    assert ErrorCode.NONE is await client.end(commit=True)
    await client.wait_for("CompleteCommit")
    values = (*map(str, committed), "next")
    assert (values,) * len(PARTITIONS) == await _shown(client)
    assert (99, ErrorCode.NONE) == await client.committed_offset()
    await _check_stable(client)
