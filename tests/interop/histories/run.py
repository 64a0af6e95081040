"""
Run plans, check their histories, and shrink a plan whose history breaks a rule.
"""

from __future__ import annotations

import asyncio
import math
import shutil
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from confluent_kafka import Consumer, KafkaException, TopicPartition

from barnabas.protocol.records.batch import batches
from tests.interop.histories.checker import Violation, check
from tests.interop.histories.clients import (
    CLIENTS,
    PATIENCE_S,
    AdminClient,
    Client,
    GaveUp,
    Lost,
    ShareClient,
    TransactionalClient,
    World,
    decoded,
    now,
    values_of,
)
from tests.interop.histories.history import (
    Acquired,
    Commit,
    Entry,
    Fault,
    FinalLog,
    History,
    Marker,
    Partition,
)
from tests.interop.histories.hosts import Host, MemoryHost, ProcessHost
from tests.interop.histories.plan import GONE, Actor, Plan, plan_of
from tests.support.server import fetch_request, fetch_topic, metadata_request

LONGEST_S: Final = 120.0
"""
After which a history that still runs is a failure.
"""
PRINTED: Final = 5


@dataclass
class Failure:
    """
    A plan whose history breaks rules, and the last lines of the broker's log.
    """

    plan: Plan
    violations: Sequence[Violation]
    log: str = ""

    def __str__(self) -> str:
        reasons = "\n".join(f"  {v.rule}: {v.reason}" for v in self.violations[:PRINTED])
        more = len(self.violations) - PRINTED
        rest = f"\n  and {more} more" if more > 0 else ""
        return f"{self.plan}\nbreaks:\n{reasons}{rest}\nlog:\n{self.log[-1500:]}"


@dataclass
class Figures:
    """
    What histories consist of.
    """

    histories: int = 0
    events: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, history: History) -> None:
        self.histories += 1
        for event in history.events:
            outcome = getattr(event, "outcome", None)
            name = type(event).__name__ + (f" {outcome.value}" if outcome else "")
            self.events[name] += 1
            if isinstance(event, Fault):
                self.faults[event.kind] += 1

    def __str__(self) -> str:
        events = ", ".join(f"{count} {name}" for name, count in sorted(self.events.items()))
        faults = ", ".join(f"{count} {name}" for name, count in sorted(self.faults.items()))
        return f"{self.histories} histories: {events}; faults: {faults}"


async def play(plan: Plan, host: Host) -> History:
    """
    Let the clients of a plan take their steps on a broker, and read everything at the end.
    """
    history = History(is_complete=False)
    try:
        async with asyncio.timeout(LONGEST_S):
            await _play(plan, host, history)
        history.is_complete = True
    except TimeoutError:
        history.problems.append(f"the history takes longer than {LONGEST_S:.0f} s")
    except (GaveUp, Lost, AssertionError, KafkaException) as error:
        history.problems.append(f"{type(error).__name__}: {error}")
    return history


async def _play(plan: Plan, host: Host, history: History) -> None:
    world = World(host.port, history, plan.topics)
    admin = AdminClient(world, Actor("admin", "admin", {}))
    used = {step.actor for step in plan.steps}
    actors = [actor for actor in plan.actors if actor.name in used]
    await admin.create(plan.topics)
    groups = sorted({a.settings["group"] for a in actors if a.kind == "share"})
    for group in groups:
        await admin.alter(32, group, "share.auto.offset.reset", "earliest")
    for kind in (0, 1):
        await admin.find("any", kind)

    clients = [CLIENTS[actor.kind](world, actor) for actor in actors]
    tasks = [
        asyncio.create_task(client.run([step for step in plan.steps if step.actor == client.name]))
        for client in clients
    ]
    faults = asyncio.create_task(_faults(plan, world, host, tasks))
    try:
        await asyncio.gather(*tasks)
        await faults
    finally:
        for task in (*tasks, faults):
            task.cancel()
    await host.heal()
    if plan.ends_with_kill:
        world.record(await host.kill())
    await _read_everything(world, plan, groups)
    await admin.line.close()


async def _faults(
    plan: Plan, world: World, host: Host, tasks: Sequence[asyncio.Task[None]]
) -> None:
    for fault in sorted(plan.faults, key=lambda f: f.when):
        while world.done < fault.when * len(plan.steps) and not all(t.done() for t in tasks):  # noqa: ASYNC110
            await asyncio.sleep(0.002)  # the clients tell nobody how far they are
        world.record(await host.meet(fault.kind, fault.values))


async def _read_everything(world: World, plan: Plan, share_groups: Sequence[str]) -> None:
    history = world.history
    settler = Client(world, Actor("the end", "", {}))
    for transactional_id in sorted(
        {a.settings["transactional_id"] for a in plan.actors if "transactional_id" in a.settings}
    ):
        settings = {"transactional_id": transactional_id, "version": 2}
        last = TransactionalClient(world, Actor("the end", "", settings))
        await last.init()
        await last.line.close()
    answer, _, _ = await settler.line.patiently(metadata_request(*plan.topics), 12, lambda _: 0)
    for topic in answer.topics:
        if topic.error_code == 0:
            world.topics[topic.name] = len(topic.partitions)
        else:
            history.deleted_topics.add(topic.name)
    alive = [t for t in plan.topics if t not in history.deleted_topics]
    for partition in world.partitions(*alive):
        history.logs[partition] = await _final_log(settler, partition)
    if plan.reads_with_librdkafka:
        await asyncio.to_thread(_compare_with_librdkafka, world, history)
    for group in sorted({commit.group for commit in history.of(Commit)}):
        await settler.committed(group, *world.partitions("a", "b"))
    for group in share_groups:
        await _drain(world, group)
    await settler.line.close()


async def _final_log(client: Client, partition: Partition) -> FinalLog:
    log = FinalLog(start=await client.log_start(partition))
    position = log.start
    while True:
        found = await _fetch(client, partition, position, is_committed=False)
        log.end = found.high_watermark
        before = position
        for batch in batches(found.records or b""):
            position = batch.next_offset
            producer = (batch.producer_id, batch.producer_epoch) if batch.has_producer_id else None
            if batch.is_control:
                (record,) = batch.records()
                marker = (Marker.ABORT, Marker.COMMIT)[(record.key or b"")[3]]
                log.entries.append(Entry(record.offset, marker, producer, is_transactional=True))
                continue
            log.entries += [
                Entry(offset, value, producer, batch.is_transactional)
                for offset, value in values_of(batch)
                if offset >= log.start
            ]
        if position == before:
            break
    if position < log.end:
        client.world.history.problems.append(f"{partition} ends at {position} of {log.end}")
    await _settled(client, partition)
    position = log.start
    while True:
        found = await _fetch(client, partition, position, is_committed=True)
        values, after = decoded(found, position, is_committed=True)
        log.committed += values
        if after == position:
            return log
        position = after


async def _settled(client: Client, partition: Partition) -> None:
    """
    Wait until no transaction is open.
    """
    deadline = now() + PATIENCE_S
    while True:
        found = await _fetch(
            client, partition, await client.log_start(partition), is_committed=True
        )
        if found.last_stable_offset == found.high_watermark:
            return
        if now() > deadline:
            client.world.history.problems.append(
                f"a transaction in {partition} never ends: the last stable offset is"
                f" {found.last_stable_offset} of {found.high_watermark}"
            )
            return
        await asyncio.sleep(0.02)


async def _fetch(client: Client, partition: Partition, position: int, *, is_committed: bool):  # type: ignore[no-untyped-def]
    part = fetch_topic(partition.topic, {partition.number: position})
    request = fetch_request(part, isolation_level=int(is_committed), max_wait_ms=0)
    answer, code, _ = await client.line.patiently(
        request, 12, lambda a: a.responses[0].partitions[0].error_code
    )
    if code != 0:
        raise GaveUp(f"{partition} at {position}: error {code}")
    return answer.responses[0].partitions[0]


def _compare_with_librdkafka(world: World, history: History) -> None:
    """
    librdkafka reads the same as the wire, with both isolation levels.
    """
    for isolation in ("read_committed", "read_uncommitted"):
        consumer = Consumer(
            {
                "bootstrap.servers": f"127.0.0.1:{world.port}",
                "group.id": "unused",
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        got: dict[Partition, list[tuple[int, str]]] = {p: [] for p in history.logs}
        left = set(history.logs)
        try:
            consumer.assign(
                [TopicPartition(p.topic, p.number, history.logs[p].start) for p in left]
            )
            deadline = now() + 3 * PATIENCE_S
            while left and now() < deadline:
                for message in consumer.consume(1000, 0.05):
                    partition = Partition(str(message.topic()), int(message.partition() or 0))
                    if message.error() is not None:
                        left.discard(partition)
                        continue
                    value = bytes(message.value() or b"").partition(b"|")[0].decode()
                    got[partition].append((int(message.offset() or 0), value))
        finally:
            consumer.close()
        if left:
            history.problems.append(f"librdkafka does not reach the end of {left}, {isolation}")
        for partition, log in history.logs.items():
            expected = log.committed
            if isolation == "read_uncommitted":
                expected = [
                    (e.offset, e.content) for e in log.entries if isinstance(e.content, str)
                ]
            if got[partition] != expected and partition not in left:
                difference = set(got[partition]) ^ set(expected)
                history.problems.append(
                    f"librdkafka reads another {partition}, {isolation}: {sorted(difference)[:5]}"
                )


async def _drain(world: World, group: str) -> None:
    """
    Read a share group to its end.
    """
    if not any(acquired.group == group for acquired in world.history.of(Acquired)):
        return
    member = ShareClient(world, Actor("the end", "share", {"group": group}))
    deadline = now() + PATIENCE_S
    ways = ["accept"]
    while now() < deadline:
        with suppress(Lost, GaveUp):
            await member.do_poll(0, ways=ways)
        delivered = {
            (acquired.partition, offset)
            for acquired in world.history.of(Acquired)
            if acquired.group == group
            for offset, _ in acquired.values
        }
        if all(
            (partition, entry.offset) in delivered or isinstance(entry.content, Marker)
            for partition, log in world.history.logs.items()
            if partition.topic == "a"
            for entry in log.entries
        ):
            break
        await asyncio.sleep(0.01)
    world.history.drained.add(group)
    with suppress(Lost, GaveUp):
        await member.do_leave(0)
    await member.line.close()


# Many histories


async def run_plan(
    plan: Plan, *, apache: bool = False, figures: Figures | None = None
) -> Failure | None:
    directory = Path(tempfile.mkdtemp(prefix="history-"))
    is_memory = plan.disk == "memory"
    host: Host = MemoryHost() if is_memory else ProcessHost.of(directory, apache=apache)
    try:
        try:
            await host.start()
            history = await play(plan, host)
        except AssertionError as error:
            history = History(problems=[str(error)], is_complete=False)
        if figures is not None:
            figures.add(history)
        violations = check(history)
        if violations:
            with suppress(OSError):
                return Failure(plan, violations, host.log_text())
            return Failure(plan, violations)
        return None
    finally:
        await host.close()
        shutil.rmtree(directory, ignore_errors=True)


async def run_seeds(
    seeds: Iterable[int],
    *,
    apache: bool = False,
    at_once: int = 3,
    figures: Figures | None = None,
    most_failures: int = 3,
) -> list[Failure]:
    """
    Run the plans of seeds, some at once, and return those that fail.
    """
    waiting = iter(seeds)
    failures: list[Failure] = []

    async def work() -> None:
        for seed in waiting:
            if len(failures) >= most_failures:
                return
            plan = plan_of(seed, real_disk_only=apache)
            failure = await run_plan(plan, apache=apache, figures=figures)
            if failure is not None:
                failures.append(failure)

    await asyncio.gather(*(work() for _ in range(at_once)))
    return failures


Run: TypeAlias = Callable[[Plan], Awaitable[Failure | None]]
"""
Runs a plan, and returns its failure if it fails.
"""


async def shrink(failure: Failure, run: Run = run_plan, *, tries: int = 60) -> Failure:
    """
    Remove steps and faults as long as a rule that the history broke is still broken.

    This is delta debugging: first halves, then smaller parts.
    """
    return await _Shrinking(failure, run, tries).shrink()


class _Shrinking:
    def __init__(self, failure: Failure, run: Run, tries: int) -> None:
        self._best = failure
        self._run = run
        self._left = tries
        self._rules = {violation.rule for violation in failure.violations}

    async def shrink(self) -> Failure:
        pieces = 2
        while self._left > 0:
            size = max(1, math.ceil(len(self._best.plan.steps) / pieces))
            if await self._remove_one_part(size):
                pieces = max(pieces - 1, 2)
            elif size == 1:
                break
            else:
                pieces *= 2
        for fault in self._best.plan.faults:
            plan = self._best.plan
            await self._fails(plan.without(plan.steps, [f for f in plan.faults if f is not fault]))
        return self._best

    async def _remove_one_part(self, size: int) -> bool:
        plan = self._best.plan
        for start in range(0, len(plan.steps), size):
            kept = [*plan.steps[:start], *plan.steps[start + size :]]
            if await self._fails(plan.without(kept, plan.faults)):
                return True
        return False

    async def _fails(self, plan: Plan) -> bool:
        """
        Whether the plan breaks one of the rules, in one of two runs: its timing varies.
        """
        for _ in range(2):
            if self._left <= 0:
                return False
            self._left -= 1
            found = await self._run(plan)
            if found is not None and self._rules & {v.rule for v in found.violations}:
                self._best = found
                return True
        return False


__all__ = ["GONE", "Failure", "Figures", "plan_of", "play", "run_plan", "run_seeds", "shrink"]
