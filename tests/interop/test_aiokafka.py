"""
What only aiokafka's clients can do; `test_scenarios.py` has what all libraries can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import aiokafka  # type: ignore[import-untyped]  # the library ships no type hints
import pytest
from aiokafka.errors import (  # type: ignore[import-untyped]  # the same
    CommitFailedError,
    InvalidGroupIdError,
    OutOfOrderSequenceNumber,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from aiokafka.protocol.produce import (  # type: ignore[import-untyped]  # the same
    ProduceRequest,
)

from tests.interop.clients.aio import AioKafkaSession, AioWriter
from tests.interop.clients.base import (
    PATIENCE,
    nothing_comes,
    numbered,
    read,
    values,
    wait_for_shares,
)
from tests.support.broker_process import BrokerProcess, wait_for


@pytest.fixture(scope="session")
def broker(quick_broker: BrokerProcess) -> BrokerProcess:
    return quick_broker


@pytest.fixture
def session(broker: BrokerProcess) -> Iterator[AioKafkaSession]:
    with AioKafkaSession(broker.bootstrap) as made:
        yield made


def test_topic_may_be_created_after_its_consumer(session: AioKafkaSession, topic: str) -> None:
    reader = session.reader(topic, group_id=topic, metadata_max_age_ms=100)
    assert nothing_comes(reader)

    session.writer().send(topic, [b"first"], partition=1)

    assert [b"first"] == values(reader, 1)


@pytest.mark.parametrize("excluded", [True, False])
def test_pattern_matches_internal_topics_if_allowed(
    session: AioKafkaSession, topic: str, excluded: bool
) -> None:
    session.create(topic)
    session.reader(topic, 0, group_id=topic).commit({0: 0})
    reader = session.reader("^__.*$", exclude_internal_topics=excluded)

    session.call(reader.consumer._client.force_metadata_update)

    assert excluded == ("__consumer_offsets" not in reader.consumer.subscription())


def test_group_without_an_id_is_refused(session: AioKafkaSession, topic: str) -> None:
    with session.refuses(InvalidGroupIdError):
        session.reader(topic, group_id="")


def test_member_with_an_expired_session_cannot_commit(session: AioKafkaSession, topic: str) -> None:
    """
    Its session expires while its heartbeats are held back, and another member takes over.
    """
    session.create(topic)
    options = {"session_timeout_ms": 1000, "heartbeat_interval_ms": 900_000}
    silent = session.reader(topic, group_id=topic, **options)
    wait_for_shares([silent], 1)
    wait_for_shares([session.reader(topic, group_id=topic)], 1)

    with session.refuses(CommitFailedError):
        silent.commit({0: 1})


def test_illegal_topic_is_refused(
    session: AioKafkaSession, caplog: pytest.LogCaptureFixture
) -> None:
    with session.refuses(UnknownTopicOrPartitionError):
        session.writer(request_timeout_ms=300).send("no spaces", [b""])

    assert "'no spaces' is not a valid topic name" in caplog.text


@pytest.mark.parametrize("transactional", [False, True])
def test_record_with_a_lost_response_is_stored_once(
    session: AioKafkaSession, topic: str, transactional: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The producer sends it again, and the broker knows it by its sequence number.
    """
    options = {"transactional_id": topic} if transactional else {"enable_idempotence": True}
    writer = session.writer(retry_backoff_ms=10, **options)
    lost = _lose_answers(writer, monkeypatch, count=2)

    if transactional:
        writer.begin()
    sent = [writer.send(topic, [value])[0].offset for value in numbered(3)]
    if transactional:
        writer.commit()

    assert 2 == len(lost)
    assert [0, 1, 2] == sent
    reader = session.reader(topic, 0, isolation_level="read_committed")
    assert numbered(3) == values(reader, 3)
    assert nothing_comes(reader)


def _lose_answers(
    writer: AioWriter, monkeypatch: pytest.MonkeyPatch, *, count: int
) -> list[object]:
    """
    Make the client believe that its first produce requests were never answered.
    """
    lost: list[object] = []
    client = writer.producer.client
    send: Callable[..., Any] = client.send

    async def forgetful(node: int, request: Any, **options: Any) -> Any:
        answer = await send(node, request, **options)
        if isinstance(request, ProduceRequest) and len(lost) < count:
            lost.append(answer)
            raise RequestTimedOutError
        return answer

    monkeypatch.setattr(client, "send", forgetful)
    return lost


def test_open_transaction_holds_the_last_stable_offset(
    session: AioKafkaSession, topic: str
) -> None:
    writer = session.writer(transactional_id=topic)
    writer.begin()
    writer.send(topic, [b"in it"])
    session.writer().send(topic, [b"behind it"])
    reader = session.reader(topic, 0, isolation_level="read_committed")
    part = reader.part(0)

    def ends() -> tuple[int, int]:
        consumer = reader.consumer
        return consumer.last_stable_offset(part), consumer.highwater(part)

    assert nothing_comes(reader)
    assert (0, 2) == ends()
    writer.commit()

    assert [0, 1] == [record.offset for record in read(reader, 2)]
    wait_for(lambda: not reader.poll() and ends() == (3, 3), "the end", PATIENCE)
    assert 3 == reader.position(0)


def test_gap_in_the_sequence_is_refused(session: AioKafkaSession, topic: str) -> None:
    """
    The transaction is lost, and the producer's next one is not.
    """
    writer = session.writer(transactional_id=topic)
    writer.begin()
    writer.send(topic, [b"one"])
    manager = writer.producer._txn_manager
    manager.increment_sequence_number(aiokafka.TopicPartition(topic, 0), 1)

    with session.refuses(OutOfOrderSequenceNumber):
        writer.send(topic, [b"three"])
    session.call(writer.producer.stop)

    again = session.writer(transactional_id=topic)
    later = again.producer._txn_manager
    assert manager.producer_id == later.producer_id
    assert manager.producer_epoch < later.producer_epoch
    again.begin()
    again.send(topic, [b"kept"])
    again.commit()
    reader = session.reader(topic, 0, isolation_level="read_committed")
    assert [b"kept"] == values(reader, 1)
