"""
What only aiokafka's clients can do; `test_scenarios.py` has what all libraries can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import aiokafka  # type: ignore[import-untyped]  # the library ships no type hints
import pytest
from aiokafka.errors import (  # type: ignore[import-untyped]  # the same
    OutOfOrderSequenceNumber,
    RequestTimedOutError,
)
from aiokafka.protocol.produce import (  # type: ignore[import-untyped]  # the same
    ProduceRequest,
)

from tests.interop.clients.aio import AioKafkaSession, AioWriter
from tests.interop.clients.base import (
    nothing_comes,
    numbered,
    values,
)
from tests.support.broker_process import BrokerProcess


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
