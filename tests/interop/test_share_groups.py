"""
Share groups (KIP-932) of real clients: members come, go and die, and so does their broker.

Each record says what its members do with it, see ``java/ShareMember.java``.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from confluent_kafka import KafkaError, Message, Producer

from barnabas.protocol.codec.schema import Message as Request
from barnabas.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from barnabas.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from tests.interop.clients.base import NewRecord
from tests.interop.conftest import new_broker
from tests.interop.live_group import PATIENCE, LiveGroup, MemberProcess, java_member
from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import BrokerProcess
from tests.support.config_requests import GROUP, SET, change
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.prove

SOURCE = Path(__file__).parent / "java" / "ShareMember.java"
SESSION_S: Final = 4.0
LOCK_S: Final = 30.0
"""
The lock of a group that does not say otherwise.
"""
SHORT_LOCK_MS: Final = 3000
DELIVERIES: Final = 10
"""
The most deliveries of a record that any group may have.
"""
UNCERTAIN: Final = (
    "DisconnectException",
    "UnknownServerException",
    "CoordinatorNotAvailableException",
)
"""
The errors of acknowledgements that may have been written: the connection broke, in a fetch or in
``commitSync``, or the broker was about to stop.
"""
QUICK = {
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": str(int(SESSION_S * 1000)),
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "300",
    "group.share.assignment.interval.ms": "100",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": str(int(LOCK_S * 1000)),
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "5",
}


class Delivery(NamedTuple):
    """
    A record that a member was given, and when: in milliseconds of the wall clock.
    """

    time_ms: int
    number: int
    partition: int
    delivery_count: int


class Result(NamedTuple):
    """
    What became of an acknowledgement; without an error it is confirmed.
    """

    time_ms: int
    number: int
    type: str
    error: str | None


class ShareMember(MemberProcess):
    def __init__(self, *arguments: str) -> None:
        self.deliveries: list[Delivery] = []
        self.results: list[Result] = []
        super().__init__(java_member(SOURCE, *arguments))

    def hear(self, words: Sequence[str]) -> None:
        match words:
            case ["got", *numbers]:
                self.deliveries.append(Delivery(*map(int, numbers)))
            case ["done" | "failed", time_ms, number, kind, *error]:
                self.results.append(
                    Result(int(time_ms), int(number), kind, error[0] if error else None)
                )

    def has(self, number: int) -> bool:
        return any(each.number == number for each in self.deliveries)

    def errors(self) -> list[str]:
        return [each.error for each in self.results if each.error]

    def unanswered(self) -> set[int]:
        """
        The records whose last delivery was not acknowledged, or without a result so far.
        """
        open_deliveries = Counter(each.number for each in [*self.deliveries])
        open_deliveries.subtract(each.number for each in [*self.results])
        return {number for number, times in open_deliveries.items() if times > 0}

    def without_answer(self) -> set[int]:
        """
        The same, and those whose acknowledgement was under way when the broker went away.
        """
        return self.unanswered().union(
            each.number for each in self.results if each.error in UNCERTAIN
        )

    def confirmed(self, kind: str = "ACCEPT") -> set[int]:
        """
        The records whose acknowledgement of this type was confirmed.
        """
        return {each.number for each in self.results if each.type == kind and each.error is None}


class ShareGroup(LiveGroup[ShareMember]):
    """
    Members of one share group, which reads its topic from the beginning.
    """

    def __init__(self, broker: BrokerProcess, topic: str, **config: str) -> None:
        super().__init__(broker, topic)
        self.sent: set[int] = set()
        self.numbers = count()
        given = {name.replace("__", "."): value for name, value in config.items()}
        values = {"share.auto.offset.reset": "earliest", **given}
        changes = [(name, SET, value) for name, value in values.items()]
        answer = self.ask(change(GROUP, self.group_id, *changes), 1)
        assert [0] == [each.error_code for each in answer.responses], answer

    # Members

    def join(self, way: str = "sync") -> ShareMember:
        member = ShareMember(self.broker.bootstrap, self.group_id, self.topic, way)
        self.members.append(member)
        return member

    def members_known(self) -> int:
        request = ShareGroupDescribeRequest(
            group_ids=[self.group_id], include_authorized_operations=False
        )
        return len(self.ask(request, 1).groups[0].members)

    def wait_for_members(self, number: int, seconds: float = PATIENCE) -> float:
        return self.wait_until(lambda: self.members_known() == number, f"{number} members", seconds)

    def holder(self, number: int) -> ShareMember:
        """
        Wait until a member has the record, and return the one that was given it last.
        """
        self.wait_until(lambda: bool(self.deliveries(number)), f"a member to have {number}")
        return max(
            (member for member in self.members if member.has(number)),
            key=lambda member: [each for each in member.deliveries if each.number == number][-1],
        )

    def let_go(self, *numbers: int) -> None:
        """
        Let the members that hold or renew the records accept them.
        """
        for member in self.members:
            if member.is_running:
                for number in numbers:
                    member.say(f"go {number}")

    # Records

    def send(self, script: str = "accept", *, each: int = 1) -> list[int]:
        """
        Produce records to each partition, with which members do what the script says, and return
        their numbers.
        """
        partitions = [*range(self.partition_counts[self.topic])] * each
        numbers = [next(self.numbers) for _ in partitions]
        records = [
            NewRecord(b"%d %s" % (number, script.encode()), partition=partition)
            for number, partition in zip(numbers, partitions, strict=True)
        ]
        self.client.produce(self.broker.bootstrap, self.topic, records, "none")
        self.sent.update(numbers)
        return numbers

    def send_one(self, script: str) -> int:
        (number,) = self.send(script)
        return number

    def deliveries(self, number: int | None = None) -> list[Delivery]:
        return sorted(
            each
            for member in self.members
            for each in [*member.deliveries]
            if number is None or each.number == number
        )

    def counts(self, number: int) -> list[int]:
        return [each.delivery_count for each in self.deliveries(number)]

    def confirmed(self, kind: str = "ACCEPT") -> set[int]:
        return set().union(*(member.confirmed(kind) for member in self.members))

    def errors(self) -> list[str]:
        return [error for member in self.members for error in member.errors()]

    def wait_for_confirmed(self, numbers: Iterable[int], kind: str = "ACCEPT") -> None:
        wanted = set(numbers)
        self.wait_until(lambda: self.confirmed(kind) >= wanted, f"{kind} of {sorted(wanted)[:9]}")

    def lag(self) -> int | None:
        """
        How many records the broker has still to deliver, or is delivering; None as long as it does
        not have all partitions.
        """
        group = DescribeShareGroupOffsetsRequestGroup(group_id=self.group_id, topics=None)
        answer = self.ask(DescribeShareGroupOffsetsRequest(groups=[group]), 1)
        lags = [
            each.lag
            for topic in answer.groups[0].topics
            if topic.topic_name == self.topic
            for each in topic.partitions
        ]
        is_whole = len(lags) == self.partition_counts[self.topic] and min(lags) >= 0
        return sum(lags) if is_whole else None

    def wait_for_no_lag(self) -> None:
        self.wait_until(lambda: self.lag() == 0, "no lag")

    def delivered_after_confirmation(self) -> list[Delivery]:
        """
        Deliveries of records whose acceptance, or rejection, had been confirmed before.
        """
        final = {
            each.number: each.time_ms
            for member in self.members
            for each in member.results
            if each.error is None and each.type in ("ACCEPT", "REJECT")
        }
        return [
            each
            for each in self.deliveries()
            if each.number in final and each.time_ms > final[each.number]
        ]

    def situation(self) -> str:
        missing = sorted(self.sent - self.confirmed())[:9]
        states = [(m.is_running, len(m.deliveries), len(m.results)) for m in self.members]
        return (
            f"{states}, not accepted {[(number, self.counts(number)) for number in missing]},"
            f" errors {Counter(self.errors())}"
        )

    def ask(self, request: Request, version: int) -> Any:
        async def ask() -> Any:
            async with await WireClient.open(self.broker.port) as client:
                return await client.ask(request, version)

        return asyncio.run(ask())


class Source:
    """
    A producer that does not stop while its broker is away.
    """

    BATCH: Final = 20
    RELEASED: Final = 7
    PAUSE_S: Final = 0.02

    def __init__(self, group: ShareGroup) -> None:
        self._group = group
        self._stopped = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": group.broker.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        """
        End it once all records are acknowledged.
        """
        self._stopped.set()
        self._thread.join(PATIENCE)
        assert 0 == self._producer.flush(PATIENCE), "records that were not acknowledged"

    def _run(self) -> None:
        group = self._group
        partitions = group.partition_counts[group.topic]
        while not self._stopped.wait(self.PAUSE_S):
            for _ in range(self.BATCH):
                number = next(group.numbers)
                self._producer.produce(
                    group.topic,
                    b"%d %s" % (number, self._script(number)),
                    partition=number % partitions,
                    on_delivery=self._delivered,
                )
            self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        value = message.value()
        assert error is None
        assert value is not None
        self._group.sent.add(int(value.split()[0]))

    def _script(self, number: int) -> bytes:
        """
        Some records are released at first.
        """
        return b"release accept" if number % self.RELEASED == 0 else b"accept"


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with new_broker(tmp_path_factory.mktemp("quick"), QUICK) as broker:
        yield broker


def test_acknowledgements_determine_redelivery(quick: BrokerProcess) -> None:
    """
    A record that is always released is archived after as many deliveries as the group allows.
    """
    with ShareGroup(quick, "decide", share__delivery__count__limit="3") as group:
        group.create("decide", 1)
        group.join("sync")
        group.join("async")

        accepted = group.send("accept", each=5)
        released = group.send("release accept", each=5)
        rejected = group.send("reject", each=5)
        hopeless = group.send("release", each=2)
        group.wait_for_no_lag()
        last = group.send_one("accept")
        group.wait_for_confirmed([last])

        assert [[1]] * 5 == [group.counts(number) for number in accepted]
        assert [[1, 2]] * 5 == [group.counts(number) for number in released]
        assert [[1]] * 5 == [group.counts(number) for number in rejected]
        assert [[1, 2, 3]] * 2 == [group.counts(number) for number in hopeless]
        assert {*accepted, *released, last} == group.confirmed("ACCEPT")
        assert {*released, *hopeless} == group.confirmed("RELEASE")
        assert {*rejected} == group.confirmed("REJECT")
        assert [] == group.errors()


def test_acquisition_lock_expires_unless_renewed(quick: BrokerProcess) -> None:
    lock = {"share__record__lock__duration__ms": str(SHORT_LOCK_MS)}
    with ShareGroup(quick, "locks", **lock) as group:
        group.create("locks", 1)
        group.join(), group.join()
        group.wait_for_members(2)

        renewed = group.send_one("renew")
        holder = group.holder(renewed)

        def time_renewed() -> int:
            given = group.deliveries(renewed)
            return given[-1].time_ms - given[0].time_ms

        group.wait_until(lambda: time_renewed() > 1.5 * SHORT_LOCK_MS, "renewals")
        group.let_go(renewed)
        group.wait_for_confirmed([renewed])

        assert {1} == set(group.counts(renewed))
        assert group.deliveries(renewed) == [d for d in holder.deliveries if d.number == renewed]
        assert [] == group.errors()

        held = group.send_one("hold renew")
        holder = group.holder(held)
        group.wait_until(lambda: group.counts(held)[-1] > 1, "the end of the lock")
        holder.say(f"go {held}")
        group.wait_until(lambda: bool(holder.errors()), "the acknowledgement that is too late")
        group.let_go(held)
        group.wait_for_confirmed([held])

        first, *others = group.deliveries(held)
        assert first in holder.deliveries
        assert {2} == {each.delivery_count for each in others}
        assert not {*others} & {*holder.deliveries}
        assert others[0].time_ms - first.time_ms > 0.9 * SHORT_LOCK_MS
        assert ["InvalidRecordStateException"] == group.errors()


def test_records_of_a_departed_member_are_redelivered_at_once(quick: BrokerProcess) -> None:
    """
    Long before their lock ends, whether it was killed or left.
    """
    with ShareGroup(quick, "gone") as group:
        group.create("gone", 1)
        for _ in range(3):
            group.join()
        group.wait_for_members(3)

        for end in (ShareMember.kill, ShareMember.close):
            number = group.send_one("hold accept")
            holder = group.holder(number)
            end(holder)
            group.wait_for_confirmed([number])

            first, second = group.deliveries(number)
            assert [1, 2] == [first.delivery_count, second.delivery_count]
            assert second.time_ms - first.time_ms < LOCK_S * 1000 / 2
            assert second not in holder.deliveries
        assert [] == group.errors()
        group.wait_for_members(1)


def test_delivery_counts_survive_a_broker_restart(tmp_path: Path) -> None:
    """
    What a member releases is written, what it acquires is not: the delivery during which the broker
    ends does not count. What the member says of it afterwards is refused.
    """
    with (
        new_broker(tmp_path, QUICK) as broker,
        ShareGroup(broker, "counted") as group,
    ):
        group.create("counted", 1)
        member = group.join()
        ends: tuple[Callable[[], object], ...] = (broker.stop, broker.kill)
        for number_of_ends, end in enumerate(ends, 1):
            number = group.send_one("release release hold")
            group.wait_until(lambda n=number: group.counts(n) == [1, 2, 3], "a third delivery")  # type: ignore[misc]
            end()
            broker.start()
            group.let_go(number)
            group.wait_for_confirmed([number])

            assert [1, 2, 3, 3] == group.counts(number)[:4]
            assert number_of_ends <= len(member.errors())


def test_every_record_is_accepted_despite_kills_and_departures(tmp_path: Path) -> None:
    """
    Members leave, are killed and join while records are produced, and the broker is restarted and
    killed. What was confirmed is never delivered again.
    """
    with (
        new_broker(tmp_path, QUICK) as broker,
        ShareGroup(broker, "all", share__delivery__count__limit=str(DELIVERIES)) as group,
    ):
        group.create("all", 4)
        leaves, killed = group.join("sync"), group.join("async")
        group.join("sync"), group.join("async")
        group.wait_for_members(4)
        source = Source(group)

        def go_on() -> None:
            goal = len(group.confirmed()) + 500
            group.wait_until(lambda: len(group.confirmed()) >= goal, f"{goal} records")

        try:
            go_on()
            leaves.close()
            took = group.wait_for_members(3)
            assert took < SESSION_S
            go_on()
            killed.kill()
            go_on()
            group.join("async")
            go_on()
            broker.stop()
            broker.start()
            go_on()
            broker.kill()
            broker.start()
            go_on()
            group.wait_for_members(3)
        finally:
            source.stop()
        group.wait_for_no_lag()

        alive = [member for member in group.members if member.is_running]
        group.wait_until(lambda: not any(m.unanswered() for m in alive), "acknowledgements")

        deliveries, confirmed = group.deliveries(), group.confirmed()
        assert group.sent == {each.number for each in deliveries}
        assert [] == group.delivered_after_confirmation()
        # Acceptances that the broker has written, but could not tell to anybody.
        untold = {each for member in group.members for each in member.without_answer()}
        assert group.sent - confirmed <= untold
        assert max(each.delivery_count for each in deliveries) < DELIVERIES
        print(
            f"{len(group.sent)} records, {len(deliveries)} deliveries,"
            f" {len(group.sent - confirmed)} not confirmed, errors {Counter(group.errors())}"
        )


def test_new_partitions_and_topics_are_read_from_their_beginning(
    quick: BrokerProcess,
) -> None:
    with ShareGroup(quick, "new") as group:
        group.create("new", 2)
        group.join("sync"), group.join("async")
        group.wait_for_members(2)
        group.wait_for_confirmed(group.send(each=3))

        group.grow(4)
        group.wait_for_confirmed(group.send(each=3))

        for partitions in (3, 4, 2):
            group.delete()
            group.create("new", partitions)
            group.wait_for_confirmed(group.send(each=3))
        group.wait_for_no_lag()

        assert {1} == {each.delivery_count for each in group.deliveries()}
        assert len(group.sent) == len(group.deliveries())
        assert [] == group.errors()


def test_aborted_records_are_not_delivered_to_a_read_committed_group(quick: BrokerProcess) -> None:
    with (
        ShareGroup(quick, "isolated", share__isolation__level="read_committed") as group,
        ShareGroup(quick, "isolated-not") as other,
    ):
        group.create(group.topic, 1)
        other.topic, other.partition_counts = group.topic, group.partition_counts
        group.join()
        other.join()
        records = [NewRecord(b"%d" % next(group.numbers), partition=0) for _ in range(40)]
        group.client.transact(quick.bootstrap, group.topic, records, "none", 10)
        last = group.send_one("accept")

        group.wait_for_confirmed([last])
        other.wait_for_confirmed([last])
        group.wait_for_no_lag()
        other.wait_for_no_lag()

        committed = {*range(10), *range(20, 30), last}
        assert sorted(committed) == sorted(each.number for each in group.deliveries())
        assert [*range(41)] == sorted(each.number for each in other.deliveries())
        assert committed == group.confirmed()


def test_live_share_group_moves_to_apache_kafka_and_back(tmp_path: Path) -> None:
    """
    Its members go on. Nothing is lost, what was confirmed does not come again, and the count of
    deliveries of a record that was released goes on.
    """
    with BothBrokers.in_turn(tmp_path, QUICK) as both:
        both.barnabas.start()
        with ShareGroup(both.barnabas, "moves") as group:
            group.create("moves", 1)
            group.join("sync"), group.join("async")
            for stops, starts in ((both.barnabas, both.kafka), (both.kafka, both.barnabas)):
                group.join()
                group.wait_for_members(3)
                group.wait_for_confirmed(group.send(each=20))
                group.wait_for_confirmed(group.send("reject", each=5), "REJECT")
                # Two members are busy, so that the third one is given what they do not get again.
                held, holders = [], set()
                for _ in range(2):
                    held.append(group.send_one("hold"))
                    holders.add(group.holder(held[-1]))
                released = group.send_one("leave accept")
                third = group.holder(released)
                third.wait()

                stops.stop()
                starts.start()
                group.let_go(*held)
                group.wait_for_confirmed(group.send(each=20))
                group.wait_for_confirmed([*held, released])

                assert 2 == len(holders - {third})
                # A connection may break once more while the broker starts: after the record was
                # delivered, which takes the count back, or before that, which does not.
                first, *others = group.counts(released)
                assert 1 == first
                assert others
                assert {*others} <= {2, 3}
                assert [] == group.delivered_after_confirmation()
                group.wait_for_no_lag()
            assert group.sent == group.confirmed("ACCEPT") | group.confirmed("REJECT")
