"""
A topic that was deleted and created again is another topic, although its name and offsets are the
same.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from pathlib import Path

import pytest

from barnabas.client.settings import BOOTSTRAP
from barnabas.pipeline.errors import DataLoss
from barnabas.pipeline.live import stream_plan as live_stream_plan
from barnabas.pipeline.option_parser import parse_stream_options
from barnabas.pipeline.reading import stream_plan
from barnabas.pipeline.reading.stream_plan import Progress, from_json, to_json
from barnabas.pipeline.spark.tasks import rows_of
from barnabas.storage.topic_partition import TopicPartition
from tests.interop.clients.base import NewRecord
from tests.pipeline.connector.conftest import QUERY_FAILED
from tests.pipeline.connector.test_streaming import (  # noqa: F401  # a fixture
    Target,
    target,
)
from tests.pipeline.live.conftest import Live
from tests.pipeline.topics import Topic, records
from tests.support.broker_process import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.spark]

COUNT, READ = 10, 5
OLD, NEW = ([f"{age} {n}".encode() for n in range(COUNT)] for age in ("old", "new"))
SAID = "was deleted and created again"


class Stream:
    """
    What Spark asks of a stream.
    """

    def __init__(self, topic: Topic, source: str, fails: bool) -> None:
        given = {"subscribe": topic.name, "startingOffsets": "earliest"}
        given["failOnDataLoss"] = str(fails).lower()
        if source == "broker":
            given |= {BOOTSTRAP: topic.broker.bootstrap, "kafka.request.timeout.ms": "1000"}
        else:
            given |= {"path": str(topic.directory), "readUpTo": "logEnd"}
        self._options = parse_stream_options(given)
        self._plan = live_stream_plan if source == "broker" else stream_plan

    def initial(self) -> Progress:
        started: Progress = self._plan.initial(self._options)
        return started

    def admit(self, start: Progress) -> Progress:
        none = {"target": None, "max_offsets": None, "max_bytes": None}
        admitted: Progress = self._plan.admit(self._options, start, **none)
        return admitted

    def read(self, start: Progress, end: Progress) -> list[bytes]:
        works = self._plan.work_between(self._options, start, end)
        batches = [batch for work in works for batch in rows_of(work, ["value"], self._options)]
        return [value for batch in batches for value in batch.column(0).to_pylist()]


def send(topic: Topic, values: list[bytes]) -> None:
    topic.send([NewRecord(value, timestamp_ms=1, partition=0) for value in values])


@pytest.fixture(params=["broker", "files"])
def source(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def topic(broker: BrokerProcess, request: pytest.FixtureRequest) -> Topic:
    topic = Topic(broker, request.node.name.replace("[", "-").rstrip("]"))
    send(topic, OLD)
    return topic


def half(topic: Topic, progress: Progress) -> Progress:
    return Progress({TopicPartition(topic.name, 0): READ}, progress.topic_ids)


def recreate(topic: Topic) -> None:
    topic.recreate()
    send(topic, NEW)


@pytest.mark.parametrize("read", [READ, COUNT])
def test_stream_reads_a_topic_created_again_from_its_beginning(
    topic: Topic, source: str, read: int, caplog: pytest.LogCaptureFixture
) -> None:
    strict, lenient = (Stream(topic, source, fails) for fails in (True, False))
    known = strict.initial()
    start = Progress({TopicPartition(topic.name, 0): read}, known.topic_ids)
    assert OLD[read:] == strict.read(start, strict.admit(start))

    recreate(topic)

    with pytest.raises(DataLoss, match=SAID):
        strict.admit(start)
    with caplog.at_level(logging.WARNING):
        end = lenient.admit(start)
    assert SAID in caplog.text
    assert to_json(end) != to_json(start)
    assert NEW == lenient.read(start, end)
    assert end == lenient.admit(end)


def test_checkpoint_without_topic_ids_is_continued(topic: Topic, source: str) -> None:
    stream = Stream(topic, source, fails=True)
    older = from_json({topic.name: {"0": READ}})

    end = stream.admit(older)

    assert OLD[READ:] == stream.read(older, end)
    assert stream.initial().topic_ids == end.topic_ids
    assert end.topic_ids


def test_planned_step_of_a_topic_created_again_is_a_data_loss(topic: Topic, source: str) -> None:
    strict, lenient = (Stream(topic, source, fails) for fails in (True, False))
    start = half(topic, strict.initial())
    end = strict.admit(start)
    recreate(topic)

    with pytest.raises(DataLoss, match=SAID):
        strict.read(start, end)
    assert [] == lenient.read(start, end)


def test_topic_created_again_while_it_is_read_is_a_data_loss(topic: Topic) -> None:
    stream = Stream(topic, "broker", fails=True)
    start = half(topic, stream.initial())
    works = live_stream_plan.work_between(stream._options, start, stream.admit(start))
    recreate(topic)

    with pytest.raises(DataLoss, match=SAID):
        list(rows_of(works[0], ["value"], stream._options))


@pytest.mark.prove
@pytest.mark.parametrize("fails", [True, False])
def test_query_notices_a_topic_created_again(
    connector: Live,
    broker: BrokerProcess,
    target: Target,  # noqa: F811  # the fixture
    tmp_path: Path,
    fails: bool,
) -> None:
    topic = Topic(broker, f"recreated.{fails}")
    topic.send(records(10))
    assert [10] == target.receive(connector.stream(topic))
    had = topic.expected
    [*_, last] = sorted((tmp_path / "checkpoint" / "offsets").glob("[0-9]*"))
    assert "id" in json.loads(last.read_text().splitlines()[-1])[topic.name]
    topic.recreate()
    topic.send(records(20, seed=1))
    soon = {"kafka.request.timeout.ms": "2000"}
    stream = connector.stream(topic, failOnDataLoss=str(fails).lower(), **soon)

    if fails:
        with pytest.raises(QUERY_FAILED, match=SAID):
            target.receive(stream)
    else:
        assert [20] == target.receive(stream)
        # The topics have the same offsets, so rows cannot be sorted by them.
        sent = Counter(seen.value for seen in [*had, *topic.expected])
        assert sent == Counter(row.value for row in target.rows().collect())
