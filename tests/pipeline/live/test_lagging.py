"""
A broker that lags behind has lost nothing: one answer never decides that records are gone.

The broker answers truly; the test changes its answers to what a leader gives that was just elected
(KIP-207), or a broker with old metadata.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from barnabas.client.connection import Connection
from barnabas.client.settings import BOOTSTRAP
from barnabas.pipeline.errors import DataLoss, PipelineError
from barnabas.pipeline.live import stream_plan
from barnabas.pipeline.live.reader import read_live
from barnabas.pipeline.option_parser import parse_stream_options
from barnabas.pipeline.options import ReadOptions
from barnabas.pipeline.reading.stream_plan import Progress
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.structs import replace
from barnabas.storage.topic_partition import TopicPartition
from tests.interop.clients.base import NewRecord
from tests.pipeline.topics import Topic
from tests.support.broker_process import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.spark]

ALL, READ, LAGS_AT = 100, 50, 40
NAME = "lagging"
PLACE = TopicPartition(NAME, 0)
FEW, ALWAYS = 3, 10**6
"""How many answers lag behind."""


@pytest.fixture(scope="module")
def topic(broker: BrokerProcess) -> Topic:
    topic = Topic(broker, NAME)
    sent = [NewRecord(b"%d" % n, partition=0, timestamp_ms=n) for n in range(ALL)]
    topic.send(sent[:READ])
    topic.send(sent[READ:])
    return topic


def options(topic: Topic, **given: str) -> ReadOptions:
    return parse_stream_options(
        {
            BOOTSTRAP: topic.broker.bootstrap,
            "subscribe": NAME,
            "startingOffsets": "earliest",
            "kafka.request.timeout.ms": "20000",
            "kafka.max.partition.fetch.bytes": "1",
            **given,
        }
    )


def read(options: ReadOptions, start: int, end: int, topic_id: UUID | None = None) -> list[int]:
    ids = {} if topic_id is None else {NAME: topic_id}
    works = stream_plan.work_between(
        options, Progress({PLACE: start}, ids), Progress({PLACE: end}, ids)
    )
    return [
        offset
        for work in works
        for batch in read_live(work, ["offset"], options)
        for offset in batch.column(0).to_pylist()
    ]


def step(
    options: ReadOptions, start: int, target: int | None = None, topic_id: UUID | None = None
) -> Any:
    aim = None if target is None else Progress({PLACE: target})
    start_at = Progress({PLACE: start}, {} if topic_id is None else {NAME: topic_id})
    return stream_plan.admit(options, start_at, target=aim, max_offsets=None).offsets


# Answers of brokers that lag.


def lagging_fetch(request: Any, answer: Any) -> bool:
    """
    A leader with all records whose followers have not said yet what they have.
    """
    if type(request).__name__ != "FetchRequest":
        return False
    if request.topics[0].partitions[0].fetch_offset < READ:
        return False
    answered = answer.responses[0].partitions[0]
    answered.high_watermark, answered.records = LAGS_AT, b""
    return True


def shorter_log(request: Any, answer: Any) -> bool:
    """
    A leader that does not have the records.
    """
    if not lagging_fetch(request, answer):
        return False
    answer.responses[0].partitions[0].error_code = ErrorCode.OFFSET_OUT_OF_RANGE
    return True


def lagging_end(request: Any, answer: Any) -> bool:
    if type(request).__name__ != "ListOffsetsRequest":
        return False
    if request.topics[0].partitions[0].timestamp != -1:
        return False
    each = answer.topics[0].partitions[0]
    answer.topics[0].partitions[0] = replace(each, offset=LAGS_AT)
    return True


def old_metadata(request: Any, answer: Any) -> bool:
    if type(request).__name__ != "MetadataRequest" or not answer.topics:
        return False
    each = answer.topics[0]
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answer.topics[0] = replace(each, error_code=code, partitions=[])
    return True


def other_id(request: Any, answer: Any) -> bool:
    """
    A broker that knows the topic that had the name before.
    """
    if type(request).__name__ != "DescribeTopicPartitionsRequest":
        return False
    answer.topics[0] = replace(answer.topics[0], topic_id=UUID(int=7))
    return True


class OtherTopicSecond:
    """
    A topic of the same name is seen by the second question for its id only.
    """

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, request: Any, answer: Any) -> bool:
        if type(request).__name__ != "DescribeTopicPartitionsRequest":
            return False
        self.asked += 1
        if self.asked != 2:
            return False
        answer.topics[0] = replace(answer.topics[0], topic_id=UUID(int=7))
        return True


class Lagging:
    """
    Changes the first answers that it can change.
    """

    def __init__(self, patch: pytest.MonkeyPatch, change: Callable[..., bool], most: int) -> None:
        self._receive = Connection.receive
        self.changed = 0

        def receive(connection: Connection) -> Any:
            answer, request = self._receive(connection)
            if self.changed < most and change(request, answer):
                self.changed += 1
            return answer, request

        patch.setattr(Connection, "receive", receive)


@pytest.mark.parametrize("fails", ["true", "false"])
@pytest.mark.parametrize("change", [lagging_fetch, shorter_log, other_id])
def test_reader_waits_for_a_leader_that_lags(
    topic: Topic,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    change: Callable[..., bool],
    fails: str,
) -> None:
    topic_id = stream_plan.latest(options(topic)).topic_ids[NAME]
    lagging = Lagging(monkeypatch, change, FEW)
    with caplog.at_level(logging.WARNING):
        found = read(options(topic, failOnDataLoss=fails), 0, ALL, topic_id)

    assert FEW == lagging.changed
    assert list(range(ALL)) == found
    assert not caplog.records


@pytest.mark.parametrize("fails", ["true", "false"])
@pytest.mark.parametrize("change", [lagging_end, old_metadata, other_id])
def test_stream_waits_for_a_broker_that_lags(
    topic: Topic,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    change: Callable[..., bool],
    fails: str,
) -> None:
    topic_id = stream_plan.latest(options(topic)).topic_ids[NAME]
    lagging = Lagging(monkeypatch, change, FEW)
    with caplog.at_level(logging.WARNING):
        assert {PLACE: ALL} == step(options(topic, failOnDataLoss=fails), READ, topic_id=topic_id)

    assert FEW == lagging.changed
    assert not caplog.records


def test_offsets_are_those_of_the_topic_whose_id_is_noted(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = OtherTopicSecond()
    Lagging(monkeypatch, change, FEW)

    assert UUID(int=7) != stream_plan.latest(options(topic)).topic_ids[NAME]
    assert 4 == change.asked


def test_batch_waits_for_a_leader_that_lags(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    lagging = Lagging(monkeypatch, lagging_end, FEW)
    starting = options(topic, startingOffsets=f'{{"{NAME}": {{"0": {READ}}}}}')

    assert {PLACE: READ} == stream_plan.initial(starting).offsets
    assert FEW == lagging.changed


def test_target_of_a_leader_that_lags_is_no_loss(topic: Topic) -> None:
    """
    The target is asked for before the stream knows how far it had read.
    """
    assert {PLACE: READ} == step(options(topic), READ, target=LAGS_AT)


@pytest.mark.parametrize(
    ("change", "start"), [(lagging_fetch, 0), (shorter_log, 0), (lagging_end, READ)]
)
def test_records_that_stay_away_are_lost(
    topic: Topic, monkeypatch: pytest.MonkeyPatch, change: Callable[..., bool], start: int
) -> None:
    def run(fails: str) -> Any:
        soon = {"kafka.request.timeout.ms": "300", "kafka.fetch.max.wait.ms": "10"}
        given = options(topic, failOnDataLoss=fails, **soon)
        return step(given, start) if change is lagging_end else read(given, start, ALL)

    def both(request: Any, answer: Any) -> bool:
        return change(request, answer) or lagging_end(request, answer)

    Lagging(monkeypatch, both, ALWAYS)
    with pytest.raises(DataLoss):
        run("true")
    kept = run("false")
    assert kept == ({PLACE: LAGS_AT} if change is lagging_end else list(range(READ)))


def test_topic_that_stays_away_is_reported(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    Lagging(monkeypatch, old_metadata, ALWAYS)

    with pytest.raises(PipelineError, match="no topic lagging"):
        step(options(topic, **{"kafka.request.timeout.ms": "300"}), READ)
