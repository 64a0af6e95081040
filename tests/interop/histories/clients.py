"""
The clients of histories, at the level of the wire, and one of librdkafka.

Each records what it asks before it asks, and what it gets. A client without an answer within its
patience closes the connection and asks again, so that the broker may see a request twice.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from uuid import UUID, uuid4

from confluent_kafka import Producer as LibrdkafkaProducer

from barnabas.protocol.codec.schema import ZERO_UUID, Message
from barnabas.protocol.compression.types import CompressionType
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.records.batch import RecordBatch, batches, build_batch
from barnabas.protocol.records.record import SimpleRecord
from tests.interop.histories.history import (
    Acknowledged,
    Acknowledgement,
    Acquired,
    Commit,
    Committed,
    Event,
    History,
    Init,
    Left,
    Outcome,
    Owned,
    Partition,
    Read,
    RecordsDeleted,
    Send,
    TopicDeleted,
    Transaction,
    input_of,
    output_of,
)
from tests.interop.histories.plan import Actor, Step
from tests.support.build import api_request
from tests.support.group_requests import (
    commit_request,
    committed_request,
    coordinator_request,
    heartbeat_request,
    join_request,
    leave_request,
    sync_request,
)
from tests.support.server import (
    fetch_request,
    fetch_topic,
    list_offsets_request,
    metadata_request,
    produce_request,
)
from tests.support.topic_requests import creatable, delete_request, grow_request
from tests.support.transaction_requests import (
    add_offsets_request,
    add_partitions_request,
    commit_in_transaction_request,
    end_request,
)
from tests.support.wire_client import Disconnected, WireClient

PATIENCE_S: Final = 6.0
SESSION_MS: Final = 300
SHARE_SESSION_S: Final = 1.0

DUPLICATE_SEQUENCE: Final = 46
OUT_OF_ORDER: Final = 45
REBALANCE: Final = 27
OUT_OF_RANGE: Final = 1
FENCED: Final = frozenset({22, 25, 110, 113})
"""
A member has to join again.
"""
PASSING: Final = frozenset({3, 5, 6, 7, 14, 15, 16, 51, 56, 88, 100, 124})
"""
Errors after which a client asks again.
"""
PERHAPS: Final = frozenset({-1, 7, 19, 20, 56})
"""
Errors of which a client does not learn whether the records are in the log.
"""


class Lost(Exception):
    """
    No answer arrived.
    """


class GaveUp(Exception):
    """
    The broker does not do what was asked for.
    """


now = time.monotonic


class World:
    """
    The broker of one history, and what was recorded.
    """

    def __init__(self, port: int, history: History, topics: Mapping[str, int]) -> None:
        self.port = port
        self.history = history
        self.topics = dict(topics)
        self.topic_ids: dict[str, UUID] = {}
        self.done = 0
        self._number = 0

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def record(self, event: Event) -> None:
        self.history.events.append(event)

    def partitions(self, *topics: str) -> list[Partition]:
        return [Partition(t, index) for t in topics for index in range(self.topics[t])]


class Line:
    """
    A connection that is opened when it is needed.
    """

    def __init__(self, world: World, patience_s: float = 3.0) -> None:
        self._world = world
        self._patience_s = patience_s
        self._wire: WireClient | None = None

    @property
    def is_open(self) -> bool:
        return self._wire is not None

    async def ask(self, *requests: Message, version: int) -> list[Any]:
        """
        Send all requests at once, and return their answers.

        Raises:
            Lost: one has no answer; the connection is closed.
        """
        return [answer async for answer in self.answers(*requests, version=version)]

    async def answers(self, *requests: Message, version: int) -> AsyncIterator[Any]:
        try:
            async with asyncio.timeout(self._patience_s):
                if self._wire is None:
                    self._wire = await WireClient.open(self._world.port)
                self._wire.send(*requests, version=version)
                await self._wire.drain()
            for _ in requests:
                async with asyncio.timeout(self._patience_s):
                    answer = await self._wire.receive()
                yield answer
        except (OSError, Disconnected) as error:
            await self.close()
            raise Lost from error

    async def send_only(self, request: Message, version: int) -> None:
        try:
            if self._wire is None:
                self._wire = await WireClient.open(self._world.port)
            self._wire.send(request, version=version)
            self._wire.expect_no_answer()
            await self._wire.drain()
        except OSError as error:
            await self.close()
            raise Lost from error

    async def close(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire._writer.transport.abort()

    async def patiently(self, request: Message, version: int, code_of: Any) -> tuple[Any, int, int]:
        """
        Ask until the answer is no passing error; return it with its error and the attempts.

        Raises:
            GaveUp: it takes too long.
        """
        deadline = now() + PATIENCE_S
        attempts = 0
        code: int | str = "no answer"
        while now() < deadline:
            attempts += 1
            try:
                (answer,) = await self.ask(request, version=version)
            except Lost:
                code = "no answer"
                await asyncio.sleep(0.01)
                continue
            code = int(code_of(answer))
            if code not in PASSING:
                return answer, code, attempts
            await asyncio.sleep(0.005)
        raise GaveUp(f"{type(request).__name__}: {code} after {attempts} attempts")


class Client:
    """
    Takes the steps of one actor.
    """

    def __init__(self, world: World, actor: Actor) -> None:
        self.world = world
        self.actor = actor
        self.name = actor.name
        self.line = Line(world, actor.settings.get("timeout_s", 3.0))

    async def run(self, steps: Sequence[Step]) -> None:
        for step in steps:
            method = getattr(self, "do_" + step.action.replace(" ", "_"))
            with suppress(GaveUp, Lost):
                await method(step.number, **step.values)
            self.world.done += 1
            await asyncio.sleep(0.002)
        with suppress(GaveUp, Lost):
            await self.finish()
        await self.line.close()

    async def finish(self) -> None:
        """
        Called after the last step.
        """

    def batch(self, values: Iterable[str], size: int = 0, **options: Any) -> bytes:
        stamp = int(time.time() * 1000)
        records = [
            SimpleRecord(stamp, None, value.encode() + b"|" + b"." * size) for value in values
        ]
        codec = CompressionType(self.actor.settings.get("codec", 0))
        return bytes(build_batch(records, compression=codec, **options))

    async def fetch(
        self,
        partition: Partition,
        position: int,
        session: int,
        *,
        is_committed: bool,
        max_bytes: int = 1 << 20,
        group: str | None = None,
    ) -> tuple[Read | None, int]:
        """
        One fetch, and its error. It is recorded if it succeeds.
        """
        part = fetch_topic(
            partition.topic, {partition.number: position}, partition_max_bytes=max_bytes
        )
        request = fetch_request(part, isolation_level=int(is_committed), max_wait_ms=0)
        began = now()
        answer, code, _ = await self.line.patiently(
            request, 12, lambda a: a.responses[0].partitions[0].error_code
        )
        found = answer.responses[0].partitions[0]
        if code != 0:
            return None, code
        values, next_position = decoded(found, position, is_committed=is_committed)
        read = Read(
            actor=self.name,
            # Of several attempts only the last one counts; it began later, which no rule minds.
            began=began,
            ended=now(),
            partition=partition,
            position=position,
            values=tuple(values),
            next_position=next_position,
            is_committed=is_committed,
            session=session,
            high_watermark=found.high_watermark,
            last_stable_offset=found.last_stable_offset,
            log_start_offset=found.log_start_offset,
            group=group,
        )
        self.world.record(read)
        return read, 0

    async def log_start(self, partition: Partition) -> int:
        request = list_offsets_request(partition.topic, {partition.number: -2})
        answer, _, _ = await self.line.patiently(
            request, 5, lambda a: a.topics[0].partitions[0].error_code
        )
        return int(answer.topics[0].partitions[0].offset)

    async def committed(self, group: str, *partitions: Partition) -> dict[Partition, int]:
        """
        The committed offsets, which are recorded.
        """
        found: dict[Partition, int] = {}
        for partition in partitions:
            request = committed_request(
                group, partition.topic, partition.number, require_stable=True
            )
            began = now()

            def code_of(answer: Any) -> int:
                (one,) = answer.groups
                return int(one.error_code or one.topics[0].partitions[0].error_code)

            answer, code, _ = await self.line.patiently(request, 8, code_of)
            if code == 0:
                offset = found[partition] = (
                    answer.groups[0].topics[0].partitions[0].committed_offset
                )
                self.world.record(
                    Committed(
                        actor=self.name,
                        began=began,
                        ended=now(),
                        group=group,
                        partition=partition,
                        offset=offset,
                    )
                )
        return found

    async def find(self, key: str, key_type: int) -> None:
        """
        Ask for the coordinator, which creates its topic.
        """
        request = coordinator_request(key, key_type=key_type)
        await self.line.patiently(request, 4, lambda a: a.coordinators[0].error_code)


def decoded(found: Any, position: int, *, is_committed: bool) -> tuple[list[tuple[int, str]], int]:
    """
    Offsets and values that a consumer shows, and its next position.
    """
    coming = sorted(found.aborted_transactions or (), key=lambda each: each.first_offset)
    aborted: set[int] = set()
    values: list[tuple[int, str]] = []
    next_position = position
    for batch in batches(found.records or b""):
        while is_committed and coming and coming[0].first_offset <= batch.last_offset:
            aborted.add(coming.pop(0).producer_id)
        next_position = batch.next_offset
        if batch.is_control:
            aborted.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborted):
            values += [(o, value) for o, value in values_of(batch) if o >= position]
    return values, max(position, next_position)


def values_of(batch: RecordBatch) -> list[tuple[int, str]]:
    return [
        (record.offset, bytes(record.value or b"").partition(b"|")[0].decode())
        for record in batch.records()
    ]


# Producers


class Sender(Client):
    """
    A client with a producer id, or without.
    """

    producer: tuple[int, int] | None = None
    transactional_id: str | None = None

    def __init__(self, world: World, actor: Actor) -> None:
        super().__init__(world, actor)
        self.sequences: dict[Partition, int] = {}

    async def init(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=20_000
        )
        began = now()
        answer, code, _ = await self.line.patiently(request, 5, lambda a: a.error_code)
        if code != 0:
            raise GaveUp(f"InitProducerId: {code}")
        self.producer = answer.producer_id, answer.producer_epoch
        self.sequences = {}
        if self.transactional_id is not None:
            self.world.record(
                Init(
                    actor=self.name,
                    began=began,
                    ended=now(),
                    transactional_id=self.transactional_id,
                    producer=self.producer,
                )
            )

    async def append(
        self, sends: list[Send], *, size: int, retries: bool = True, version: int = 11
    ) -> int:
        """
        Send batches to one partition at once, again and again until each has an outcome; return the
        last error that is final.
        """
        requests = [self._produce_request(send, size) for send in sends]
        for send in sends:
            send.began, send.attempts = now(), 0
            self.world.record(send)
        if sends[0].acks == 0:
            for send, request in zip(sends, requests, strict=True):
                send.attempts = 1
                with suppress(Lost):
                    await self.line.send_only(request, version)
            return 0
        pending = list(zip(sends, requests, strict=True))
        deadline = now() + PATIENCE_S
        error = 0
        while pending and now() < deadline:
            try:
                error = await self._send_once(pending, version) or error
            except Lost:
                await asyncio.sleep(0.01)
            if not retries:
                break
            if pending:
                await asyncio.sleep(0.005)
        if pending or error:
            # Sequence numbers may be missing: the next batch takes another producer id.
            self.producer = None
        return error or (-1 if pending else 0)

    def _produce_request(self, send: Send, size: int) -> Message:
        options: dict[str, Any] = {}
        if self.producer is not None:
            sequence = self.sequences.get(send.partition, 0)
            self.sequences[send.partition] = sequence + len(send.values)
            options = {
                "producer_id": self.producer[0],
                "producer_epoch": self.producer[1],
                "base_sequence": sequence,
                "is_transactional": self.transactional_id is not None,
            }
            send.producer = self.producer
        return produce_request(
            send.partition.topic,
            self.batch(send.values, size, **options),
            partition=send.partition.number,
            acks=send.acks,
            transactional_id=self.transactional_id,
        )

    async def _send_once(self, pending: list[tuple[Send, Message]], version: int) -> int:
        """
        Send all pending batches, and remove those that have an outcome; return the last error.
        """
        asked = list(pending)
        for send, _ in asked:
            send.attempts += 1
        error = index = 0
        requests = [request for _, request in asked]
        async for answer in self.line.answers(*requests, version=version):
            send, index = asked[index][0], index + 1
            found = answer.responses[0].partition_responses[0]
            error = self._settle(send, found, pending) or error
        return error

    def _settle(self, send: Send, found: Any, pending: list[tuple[Send, Message]]) -> int:
        code = int(found.error_code)
        is_first = pending[0][0] is send
        if code in (0, DUPLICATE_SEQUENCE):
            send.outcome = Outcome.OK
            if code == 0 and found.base_offset >= 0:
                send.base_offset = found.base_offset
        elif code in PASSING or (code == OUT_OF_ORDER and not is_first):
            return 0
        elif code not in PERHAPS and send.attempts == 1:
            send.outcome = Outcome.FAILED
        if send.outcome is not Outcome.UNKNOWN:
            send.ended = now()
        pending[:] = [each for each in pending if each[0] is not send]
        return code if send.outcome is not Outcome.OK else 0


class ProducerClient(Sender):
    async def do_send(
        self, number: int, *, topic: str, partition: int, batches: int, records: int, size: int
    ) -> None:
        settings = self.actor.settings
        if settings["is_idempotent"] and self.producer is None:
            await self.init()
        sends = [
            Send(
                actor=self.name,
                began=math.inf,
                partition=Partition(topic, partition),
                values=tuple(f"{self.name}.{number}.{b}.{r}" for r in range(records)),
                acks=settings["acks"],
                in_flight=settings["in_flight"],
            )
            for b in range(batches)
        ]
        await self.append(sends, size=size, retries=settings["retries"])


class TransactionalClient(Sender):
    """
    One instance of a transactional producer; another one may have the same transactional id.
    """

    def __init__(self, world: World, actor: Actor) -> None:
        super().__init__(world, actor)
        self.transactional_id = actor.settings["transactional_id"]
        self.version = actor.settings["version"]

    async def do_begin_again(self, number: int) -> None:
        self.producer = None
        await self.init()

    async def do_transaction(
        self, number: int, *, sends: Sequence[Any], offsets: int | None, end: str
    ) -> None:
        transaction = await self.begin()
        ok = True
        for index, (topic, partition, records) in enumerate(sends):
            values = [f"{self.name}.{number}.{index}.{r}" for r in range(records)]
            ok = ok and await self.send_in(transaction, Partition(topic, partition), values)
        commits = {} if offsets is None or not ok else {Partition("a", 0): offsets}
        await self.end(transaction, end if ok or end != "commit" else "abort", "g-txn", commits)

    async def begin(self) -> Transaction:
        if self.producer is None:
            await self.init()
        assert self.producer is not None
        assert self.transactional_id is not None
        transaction = Transaction(
            actor=self.name,
            began=math.inf,
            number=self.world.next_number(),
            transactional_id=self.transactional_id,
            producer=self.producer,
            is_commit=False,
        )
        self.world.record(transaction)
        return transaction

    async def send_in(
        self, transaction: Transaction, partition: Partition, values: Sequence[str]
    ) -> bool:
        assert self.transactional_id is not None
        if self.producer is None:
            return False
        if self.version == 1:
            added = {partition.topic: [partition.number]}
            request = add_partitions_request(self.transactional_id, self.producer, added)
            _, code, _ = await self.line.patiently(
                request,
                3,
                lambda a: (
                    a.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
                ),
            )
            if code != 0:
                self.producer = None
                return False
        send = Send(
            actor=self.name,
            began=math.inf,
            partition=partition,
            values=tuple(values),
            transaction=transaction.number,
        )
        version = 11 if self.version == 1 else 12
        return await self.append([send], size=5, version=version) == 0

    async def end(
        self, transaction: Transaction, how: str, group: str, offsets: Mapping[Partition, int]
    ) -> bool:
        """
        End it; return whether it is committed.
        """
        if how == "leave open" or self.producer is None:
            self.producer = None
            return False
        try:
            ok = await self._commit_offsets(transaction, group, offsets)
            is_commit = transaction.is_commit = how == "commit" and ok
            assert self.transactional_id is not None
            transaction.began = now()
            for commit in self.world.history.of(Commit):
                if commit.transaction == transaction.number:
                    commit.began = transaction.began
            request = end_request(self.transactional_id, self.producer, commit=is_commit)
            version = 4 if self.version == 1 else 5
            answer, code, attempts = await self.line.patiently(
                request, version, lambda a: a.error_code
            )
        except GaveUp:
            self.producer = None
            return False
        if code == 0:
            transaction.outcome = Outcome.OK
            transaction.ended = now()
            for commit in self.world.history.of(Commit):
                if commit.transaction == transaction.number and is_commit:
                    commit.outcome, commit.ended = Outcome.OK, transaction.ended
            if self.version == 2:
                self.producer = answer.producer_id, answer.producer_epoch
                self.sequences = {}
            return is_commit
        if attempts == 1:
            transaction.outcome = Outcome.FAILED
            transaction.ended = now()
        self.producer = None
        return False

    async def _commit_offsets(
        self, transaction: Transaction, group: str, offsets: Mapping[Partition, int]
    ) -> bool:
        if not offsets:
            return True
        assert self.transactional_id is not None
        assert self.producer is not None
        if self.version == 1:
            request: Message = add_offsets_request(self.transactional_id, self.producer, group)
            _, code, _ = await self.line.patiently(request, 3, lambda a: a.error_code)
            if code != 0:
                return False
        for partition, offset in offsets.items():
            request = commit_in_transaction_request(
                self.transactional_id,
                self.producer,
                group,
                {partition.topic: {partition.number: offset}},
            )
            self.world.record(
                Commit(
                    actor=self.name,
                    began=math.inf,
                    group=group,
                    partition=partition,
                    offset=offset,
                    transaction=transaction.number,
                )
            )
            version = 4 if self.version == 1 else 5
            _, code, _ = await self.line.patiently(
                request, version, lambda a: a.topics[0].partitions[0].error_code
            )
            if code != 0:
                return False
        return True


class TransformerClient(TransactionalClient):
    """
    Consumes *a*, and produces to *b*, exactly once; a second instance fences the first.
    """

    def __init__(self, world: World, actor: Actor) -> None:
        super().__init__(world, actor)
        self.positions: dict[Partition, int] = {}
        self.session = 0

    async def do_transform(self, number: int, *, end: str, most: int) -> None:
        group = self.actor.settings["group"]
        if self.producer is None:
            await self.init()
            self.session = self.world.next_number()
            self.positions = await self.committed(group, *self.world.partitions("a"))
        inputs: list[str] = []
        read_to: dict[Partition, int] = {}
        for partition, position in self.positions.items():
            read, code = await self.fetch(
                partition, max(position, 0), self.session, is_committed=True, group=group
            )
            if code == OUT_OF_RANGE:
                read_to[partition] = await self.log_start(partition)
                self.session = self.world.next_number()
            if read is None or len(inputs) >= most:
                continue
            inputs += [input_of(partition, offset, value) for offset, value in read.values]
            read_to[partition] = read.next_position
        # A fetch of a partition that is not taken is read again, in another session.
        self.session = self.world.next_number()
        if not inputs:
            return
        transaction = await self.begin()
        outputs = [output_of(value, self.name, transaction.number) for value in inputs]
        ok = await self.send_in(transaction, Partition("b", 0), outputs)
        if await self.end(transaction, end if ok else "abort", group, read_to if ok else {}):
            self.positions |= read_to
        else:
            self.producer = None


class LibrdkafkaClient(Client):
    """
    The idempotent producer of librdkafka.
    """

    producer: LibrdkafkaProducer | None = None

    async def do_send(
        self, number: int, *, topic: str, partition: int, batches: int, records: int, size: int
    ) -> None:
        sends = [
            Send(
                actor=self.name,
                began=now(),
                partition=Partition(topic, partition),
                values=(f"{self.name}.{number}.0.{r}",),
                # librdkafka does not show its id; no rule compares it without a transaction.
                producer=(-2, 0),
                in_flight=5,
            )
            for r in range(records)
        ]
        for send in sends:
            self.world.record(send)
        await asyncio.to_thread(self._send, sends, size)

    def _send(self, sends: list[Send], size: int) -> None:
        if self.producer is None:
            self.producer = LibrdkafkaProducer(
                {
                    "bootstrap.servers": f"127.0.0.1:{self.world.port}",
                    "enable.idempotence": True,
                    "linger.ms": 1,
                    "reconnect.backoff.ms": 10,
                    "reconnect.backoff.max.ms": 50,
                    "retry.backoff.ms": 10,
                    "topic.metadata.refresh.interval.ms": 200,
                    "message.timeout.ms": 5000,
                    "log_level": 0,
                }
            )

        def delivered(send: Send) -> Any:
            def on_delivery(error: Any, message: Any) -> None:
                if error is None:
                    send.base_offset = message.offset() if message.offset() >= 0 else None
                    send.outcome, send.ended = Outcome.OK, now()

            return on_delivery

        for send in sends:
            value = send.values[0].encode() + b"|" + b"." * size
            topic, index = send.partition
            self.producer.produce(topic, value, partition=index, on_delivery=delivered(send))
        self.producer.flush(PATIENCE_S)
        if any(send.outcome is not Outcome.OK for send in sends):
            self.producer = None


# Consumers


class ReaderClient(Client):
    """
    A consumer without a group.
    """

    def __init__(self, world: World, actor: Actor) -> None:
        super().__init__(world, actor)
        self.positions: dict[Partition, int] = {}
        self.session = world.next_number()

    async def do_seek_to_the_beginning(self, number: int) -> None:
        self.positions = {}
        self.session = self.world.next_number()

    async def do_poll(self, number: int, *, topic: str, partition: int) -> None:
        place = Partition(topic, partition)
        read, code = await self.fetch(
            place,
            self.positions.get(place, 0),
            self.session,
            is_committed=self.actor.settings["is_committed"],
            max_bytes=self.actor.settings["max_bytes"],
        )
        if read is not None:
            self.positions[place] = read.next_position
        elif code == OUT_OF_RANGE:
            self.positions[place] = await self.log_start(place)


class MemberClient(Client):
    """
    A consumer of a group, without its membership.
    """

    def __init__(self, world: World, actor: Actor) -> None:
        super().__init__(world, actor)
        self.group = actor.settings["group"]
        self.member = ""
        self.epoch = -1
        self.stint = 0
        self.session = 0
        self.assigned: frozenset[Partition] = frozenset()
        self.positions: dict[Partition, int] = {}

    async def stay(self) -> None:
        """
        Join, or send a heartbeat.
        """
        raise NotImplementedError

    async def do_crash(self, number: int, **_: Any) -> None:
        await self.line.close()
        self.forget()

    def forget(self) -> None:
        self.epoch = -1
        self.member = ""
        self.assigned = frozenset()
        self.positions = {}

    def confirm(self, began: float, *, is_classic: bool) -> None:
        self.world.record(
            Owned(
                actor=self.name,
                began=began,
                ended=now(),
                group=self.group,
                member=self.member,
                epoch=self.epoch,
                partitions=self.assigned,
                stint=self.stint,
                is_classic=is_classic,
            )
        )

    async def do_poll(self, number: int, *, commits: bool, is_late: bool = False) -> None:
        """
        Args:
            is_late: one commit more names the generation before, as that of a thread that was
                suspended.
        """
        await self.stay()
        self.positions = {p: o for p, o in self.positions.items() if p in self.assigned}
        for partition in sorted(self.assigned - self.positions.keys()):
            found = await self.committed(self.group, partition)
            if partition in found:
                self.positions[partition] = max(found[partition], 0)
                self.session = self.world.next_number()
        for partition, position in sorted(self.positions.items()):
            read, code = await self.fetch(
                partition,
                position,
                self.session,
                is_committed=self.actor.settings["is_committed"],
                max_bytes=self.actor.settings["max_bytes"],
                group=self.group,
            )
            if code == OUT_OF_RANGE:
                self.positions[partition] = await self.log_start(partition)
            if read is None:
                continue
            self.positions[partition] = read.next_position
            if commits and read.next_position > position:
                await self.commit(partition, read.next_position)
                if is_late and self.epoch > 1:
                    await self.commit(partition, position, epoch=self.epoch - 1)

    async def commit(self, partition: Partition, offset: int, *, epoch: int | None = None) -> None:
        if epoch is None:
            epoch = self.epoch
        event = Commit(
            actor=self.name,
            began=now(),
            group=self.group,
            partition=partition,
            offset=offset,
            member=self.member,
            epoch=epoch,
        )
        self.world.record(event)
        request = commit_request(
            self.group,
            partition.topic,
            {partition.number: offset},
            generation_id_or_member_epoch=epoch,
            member_id=self.member,
        )
        _, code, attempts = await self.line.patiently(
            request, 9, lambda a: a.topics[0].partitions[0].error_code
        )
        if code == 0:
            event.outcome, event.ended = Outcome.OK, now()
        elif attempts == 1:
            event.outcome, event.ended = Outcome.FAILED, now()
        if code in FENCED and epoch == self.epoch:
            self.forget()


class ClassicClient(MemberClient):
    async def stay(self) -> None:
        if self.epoch >= 0:
            request = heartbeat_request(self.group, self.member, self.epoch)
            _, code, _ = await self.line.patiently(request, 4, lambda a: a.error_code)
            if code == 0:
                return
            if code != REBALANCE:
                self.forget()
        deadline = now() + PATIENCE_S
        while now() < deadline:
            if await self._join():
                return
        raise GaveUp("join")

    async def _join(self) -> bool:
        request: Message = join_request(
            self.group,
            self.member,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            protocol_type="history",
            protocols=[{"name": "all", "metadata": b""}],
        )
        answer, code, _ = await self.line.patiently(request, 5, lambda a: a.error_code)
        if code == 79:  # MEMBER_ID_REQUIRED
            self.member = answer.member_id
            return False
        if code != 0:
            self.forget()
            return False
        self.member, self.epoch = answer.member_id, answer.generation_id
        given: dict[str, list[Partition]] = {each.member_id: [] for each in answer.members}
        for index, partition in enumerate(self.world.partitions("a", "b")):
            if given:
                given[sorted(given)[index % len(given)]].append(partition)
        request = sync_request(
            self.group,
            self.member,
            self.epoch,
            assignments=[
                {"member_id": member, "assignment": json.dumps(partitions).encode()}
                for member, partitions in given.items()
            ],
        )
        began = now()
        answer, code, _ = await self.line.patiently(request, 3, lambda a: a.error_code)
        if code == REBALANCE:
            return False
        if code != 0:
            self.forget()
            return False
        self.assigned = frozenset(Partition(*p) for p in json.loads(answer.assignment or b"[]"))
        self.positions = {}
        self.stint = self.world.next_number()
        self.confirm(began, is_classic=True)
        return True

    async def do_leave(self, number: int, **_: Any) -> None:
        if self.member:
            request = leave_request(4, self.group, self.member)
            self.forget()
            await self.line.patiently(request, 4, lambda a: a.error_code)

    async def finish(self) -> None:
        await self.do_leave(0)


class ModernClient(MemberClient):
    reported: frozenset[Partition] = frozenset()

    async def stay(self) -> None:
        if not self.world.topic_ids:
            raise GaveUp("no topic ids")
        for _ in range(4):
            await self._beat()
            if self.epoch > 0 and self.assigned and self.assigned == self.reported:
                return
            await asyncio.sleep(0.01)

    async def _beat(self) -> None:
        is_new = self.epoch <= 0
        if is_new:
            self.member = str(uuid4())
            self.assigned = frozenset()
            self.stint = self.world.next_number()
        reported = self.assigned
        request = api_request(
            "consumer_group_heartbeat",
            group_id=self.group,
            member_id=self.member,
            member_epoch=0 if is_new else self.epoch,
            rebalance_timeout_ms=5000 if is_new else -1,
            subscribed_topic_names=["a", "b"] if is_new else None,
            topic_partitions=_by_topic_id(self.world, reported),
        )
        began = now()
        answer, code, _ = await self.line.patiently(request, 1, lambda a: a.error_code)
        if code != 0:
            self.forget()
            return
        self.reported = reported
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.assigned = _partitions_of(self.world, answer.assignment.topic_partitions)
        self.confirm(began, is_classic=False)

    async def do_leave(self, number: int, **_: Any) -> None:
        if self.epoch > 0:
            request = api_request(
                "consumer_group_heartbeat",
                group_id=self.group,
                member_id=self.member,
                member_epoch=-1,
            )
            self.forget()
            await self.line.patiently(request, 1, lambda a: a.error_code)

    async def finish(self) -> None:
        await self.do_leave(0)


def _by_topic_id(world: World, partitions: Iterable[Partition]) -> list[dict[str, Any]]:
    found: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        found.setdefault(topic, []).append(index)
    return [{"topic_id": world.topic_ids[t], "partitions": ps} for t, ps in found.items()]


def _partitions_of(world: World, topics: Any) -> frozenset[Partition]:
    names = {topic_id: name for name, topic_id in world.topic_ids.items()}
    return frozenset(
        Partition(names[each.topic_id], index)
        for each in topics
        if each.topic_id in names
        for index in each.partitions
    )


class ShareClient(Client):
    """
    A member of a share group.
    """

    def __init__(self, world: World, actor: Actor) -> None:
        super().__init__(world, actor)
        self.group = actor.settings["group"]
        self.member = ""
        self.epoch = 0
        self.fetch_epoch = 0
        self.session = 0
        self.session_ends = 0.0
        self.assigned: frozenset[Partition] = frozenset()

    async def _beat(self, epoch: int | None = None) -> int:
        is_new = not self.member
        if is_new:
            self.member, self.epoch, self.fetch_epoch = str(uuid4()), 0, 0
            self.session = self.world.next_number()
            self.assigned = frozenset()
        request = api_request(
            "share_group_heartbeat",
            group_id=self.group,
            member_id=self.member,
            member_epoch=self.epoch if epoch is None else epoch,
            subscribed_topic_names=["a"] if is_new else None,
        )
        began = now()
        answer, code, _ = await self.line.patiently(request, 1, lambda a: a.error_code)
        if code != 0:
            self._leave()
        else:
            self.session_ends = began + SHARE_SESSION_S
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.assigned = _partitions_of(self.world, answer.assignment.topic_partitions)
        return code

    def _leave(self) -> None:
        """
        The broker may release what the member holds.
        """
        if self.member:
            event = Left(actor=self.name, began=now(), group=self.group, member=self.member)
            self.world.record(event)
        self.member = ""

    async def do_leave(self, number: int, **_: Any) -> None:
        if self.member:
            member = self.member
            self._leave()
            self.member = member
            await self._beat(-1)
            self.member = ""

    async def do_crash(self, number: int, **_: Any) -> None:
        self._leave()
        await self.line.close()

    async def finish(self) -> None:
        self._leave()

    async def do_poll(self, number: int, *, ways: Sequence[str]) -> int:
        for _ in range(5):
            await self._beat()
            if self.assigned:
                break
            await asyncio.sleep(0.01)
        if not self.assigned or not self.member:
            return 0
        acquired = await self._acquire()
        for each in acquired:
            offsets = [offset for offset, _ in each.values]
            for way in ("accept", "release", "reject"):
                chosen = [o for o in offsets if ways[o % len(ways)] == way]
                if chosen:
                    kind = Acknowledgement[way.upper()]
                    await self._acknowledge(each.partition, chosen, kind)
        return len(acquired)

    async def _acquire(self) -> list[Acquired]:
        topics = [
            {
                "topic_id": each["topic_id"],
                "partitions": [
                    {"partition_index": index, "acknowledgement_batches": []}
                    for index in each["partitions"]
                ],
            }
            for each in _by_topic_id(self.world, self.assigned)
        ]
        request = api_request(
            "share_fetch",
            group_id=self.group,
            member_id=self.member,
            share_session_epoch=self.fetch_epoch,
            max_wait_ms=0 if self.fetch_epoch else 20,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=10,
            batch_size=10,
            topics=topics,
            forgotten_topics_data=[],
        )
        began = now()
        try:
            (answer,) = await self.line.ask(request, version=1)
        except Lost:
            self._leave()
            raise
        if answer.error_code != 0:
            self._leave()
            return []
        self.fetch_epoch += 1
        found: list[Acquired] = []
        names = {topic_id: name for name, topic_id in self.world.topic_ids.items()}
        for topic in answer.responses:
            for part in topic.partitions:
                if part.error_code != 0 or not part.acquired_records:
                    continue
                counts = {
                    offset: acquired.delivery_count
                    for acquired in part.acquired_records
                    for offset in range(acquired.first_offset, acquired.last_offset + 1)
                }
                values = [
                    (offset, value)
                    for batch in batches(part.records or b"")
                    if not batch.is_control
                    for offset, value in values_of(batch)
                    if offset in counts
                ]
                event = Acquired(
                    actor=self.name,
                    began=began,
                    ended=now(),
                    group=self.group,
                    member=self.member,
                    partition=Partition(names[topic.topic_id], part.partition_index),
                    values=tuple(values),
                    # A member without a heartbeat loses what it holds.
                    lock_s=min(
                        answer.acquisition_lock_timeout_ms / 1000, self.session_ends - began
                    ),
                    session=self.session,
                    counts=tuple(counts[offset] for offset, _ in values),
                )
                self.world.record(event)
                found.append(event)
        return found

    async def _acknowledge(
        self, partition: Partition, offsets: Sequence[int], kind: Acknowledgement
    ) -> None:
        event = Acknowledged(
            actor=self.name,
            began=now(),
            group=self.group,
            member=self.member,
            partition=partition,
            offsets=tuple(offsets),
            kind=kind,
        )
        self.world.record(event)
        request = api_request(
            "share_acknowledge",
            group_id=self.group,
            member_id=self.member,
            share_session_epoch=self.fetch_epoch,
            topics=[
                {
                    "topic_id": self.world.topic_ids[partition.topic],
                    "partitions": [
                        {
                            "partition_index": partition.number,
                            "acknowledgement_batches": [
                                {
                                    "first_offset": offset,
                                    "last_offset": offset,
                                    "acknowledge_types": [kind.value],
                                }
                                for offset in offsets
                            ],
                        }
                    ],
                }
            ],
        )
        try:
            (answer,) = await self.line.ask(request, version=1)
        except Lost:
            self._leave()
            raise
        if answer.error_code != 0:
            self._leave()
            raise GaveUp(f"ShareAcknowledge: {answer.error_code}")
        self.fetch_epoch += 1
        if answer.responses and answer.responses[0].partitions[0].error_code == 0:
            event.outcome, event.ended = Outcome.OK, now()


# Administration


class AdminClient(Client):
    async def do_delete_and_create(self, number: int, *, topic: str) -> None:
        event = TopicDeleted(actor=self.name, began=now(), topic=topic)
        self.world.record(event)
        await self.line.patiently(
            delete_request(5, topic), 5, lambda a: 7 if a.responses[0].error_code == 7 else 0
        )
        event.outcome, event.ended = Outcome.OK, now()
        await self.create({topic: self.world.topics[topic]})

    async def create(self, topics: Mapping[str, int]) -> None:
        wanted = [creatable(name, count) for name, count in topics.items()]
        request = api_request("create_topics", topics=wanted, timeout_ms=10_000)
        deadline = now() + PATIENCE_S
        while now() < deadline:
            # 36: it exists. Kafka deletes in the background.
            answer, _, _ = await self.line.patiently(request, 5, lambda _: 0)
            if all(each.error_code in (0, 36) for each in answer.topics):
                break
            await asyncio.sleep(0.01)
        await self.learn_ids(*topics)

    async def learn_ids(self, *topics: str) -> None:
        deadline = now() + PATIENCE_S
        while now() < deadline:
            request = metadata_request(*topics)
            answer, _, _ = await self.line.patiently(request, 12, lambda _: 0)
            ids = {each.name: each.topic_id for each in answer.topics}
            if ZERO_UUID not in ids.values():
                self.world.topic_ids |= ids
                for each in answer.topics:
                    self.world.topics[each.name] = len(each.partitions)
                return
            await asyncio.sleep(0.01)
        raise GaveUp("topic ids")

    async def do_grow(self, number: int, *, topic: str, count: int) -> None:
        request = grow_request(**{topic: count})
        await self.line.patiently(request, 2, lambda _: 0)
        await self.learn_ids(topic)

    async def do_delete_records(
        self, number: int, *, topic: str, partition: int, part: float
    ) -> None:
        request: Message = list_offsets_request(topic, {partition: -1})
        answer, code, _ = await self.line.patiently(
            request, 5, lambda a: a.topics[0].partitions[0].error_code
        )
        before = int(answer.topics[0].partitions[0].offset * part)
        event = RecordsDeleted(
            actor=self.name, began=now(), partition=Partition(topic, partition), before=before
        )
        self.world.record(event)
        partitions = [{"partition_index": partition, "offset": before}]
        request = api_request(
            "delete_records", topics=[{"name": topic, "partitions": partitions}], timeout_ms=10_000
        )
        _, code, _ = await self.line.patiently(
            request, 2, lambda a: a.topics[0].partitions[0].error_code
        )
        if code == 0:
            event.outcome, event.ended = Outcome.OK, now()

    async def do_alter_config(self, number: int, *, topic: str, name: str, value: str) -> None:
        await self.alter(2, topic, name, value)

    async def alter(self, kind: int, resource: str, name: str, value: str) -> None:
        configs = [{"name": name, "config_operation": 0, "value": value}]
        request = api_request(
            "incremental_alter_configs",
            resources=[{"resource_type": kind, "resource_name": resource, "configs": configs}],
            validate_only=False,
        )
        await self.line.patiently(request, 1, lambda a: a.responses[0].error_code)

    async def do_reset_offsets(self, number: int, *, group: str, topic: str, offset: int) -> None:
        event = Commit(
            actor=self.name,
            began=now(),
            group=group,
            partition=Partition(topic, 0),
            offset=offset,
            is_reset=True,
        )
        self.world.record(event)
        request = commit_request(group, topic, {0: offset})
        _, code, _ = await self.line.patiently(
            request, 8, lambda a: a.topics[0].partitions[0].error_code
        )
        if code == 0:
            event.outcome, event.ended = Outcome.OK, now()


CLIENTS: Final[Mapping[str, type[Client]]] = {
    "producer": ProducerClient,
    "transactional": TransactionalClient,
    "transformer": TransformerClient,
    "librdkafka": LibrdkafkaClient,
    "reader": ReaderClient,
    "classic": ClassicClient,
    "modern": ModernClient,
    "share": ShareClient,
    "admin": AdminClient,
}
