"""
Spark's connector, the files of the broker and the producers agree on 200,000 records of every kind,
for Barnabas and for Apache Kafka.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from barnabas.pipeline.jobs.compact.job import compact
from barnabas.pipeline.jobs.compact.snapshots import Snapshots
from barnabas.pipeline.rows import scan
from barnabas.pipeline.schemas import HEADERS, TIMESTAMP
from tests.interop.clients.base import CODECS, PATIENCE, NewRecord, Place, Seen
from tests.interop.clients.confluent import Confluent
from tests.interop.clients.java import Java
from tests.interop.clients.kafka_python import KafkaPython
from tests.pipeline.topics import START_MS
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import Barnabas, BrokerProcess
from tests.support.compiled import ROOT

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.prove]

PAGE: Final = ROOT / "docs" / "spark-connector.md"
PARTITIONS: Final = 3
TRANSACTION: Final = 250
SETTINGS: Final = {"log.cleaner.backoff.ms": "100", "log.retention.ms": "-1"}
COMPACTED: Final = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.0001",
    # By the timestamps of records, which are one millisecond apart.
    "segment.ms": "1000",
}

COLUMNS: Final = ("partition", "offset", "timestamp", "key", "value", "headers")
SCHEMA: Final = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", TIMESTAMP),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
    ]
)

Producer = Java | Confluent | KafkaPython


@dataclass
class Filled:
    """
    A broker with three topics, and the records that a committed read of each has to return.
    """

    broker: BrokerProcess
    expected: dict[str, list[Seen]] = field(default_factory=dict)
    sent: int = 0

    def send(
        self, producer: Producer, topic: str, count: int, codec: str, *, keyed: bool = False
    ) -> None:
        new = records(count, seed=self.sent, nulls=producer.sends_null_headers, keyed=keyed)
        places = producer.produce(self.broker.bootstrap, topic, new, codec)
        self._note(topic, new, places)

    def transact(self, producer: Producer, topic: str, count: int, codec: str) -> None:
        new = records(count, seed=self.sent, nulls=producer.sends_null_headers)
        places = producer.transact(self.broker.bootstrap, topic, new, codec, TRANSACTION)
        self._note(topic, new, places, lambda number: number // TRANSACTION % 2 == 0)

    def _note(
        self,
        topic: str,
        new: Sequence[NewRecord],
        places: Sequence[Place],
        is_committed: Callable[[int], bool] = lambda _: True,
    ) -> None:
        self.sent += len(new)
        self.expected.setdefault(topic, []).extend(
            Seen(*place, record.timestamp_ms or 0, record.key, record.value, record.headers)
            for number, (record, place) in enumerate(zip(new, places, strict=True))
            if is_committed(number)
        )


def records(count: int, *, seed: int, nulls: bool, keyed: bool = False) -> list[NewRecord]:
    """
    Records with everything that a record may have, a millisecond apart.

    Args:
        nulls: whether headers may be null, and key and value both at once: kafka-python has
            neither.
        keyed: whether all have a key.
    """
    chance = random.Random(seed)
    null = None if nulls else b""
    shapes = (
        (),
        (),
        (("trace", b"\x00\xff"),),
        (("a", null), ("a", b""), ("é", b"1")),
    )
    text = chance.randbytes(300)
    made = []
    for number in range(count):
        key = b"key %d" % chance.randrange(400) if keyed or chance.random() < 0.8 else None
        value = text[: chance.randrange(300)] if chance.random() < 0.9 else None
        if key is None and value is None:
            value = null
        headers = chance.choice(shapes)
        made.append(NewRecord(value, key, headers, START_MS + number, number % PARTITIONS))
    return made


@pytest.fixture(scope="module", params=[Barnabas, ApacheKafka], ids=["Barnabas", "Apache Kafka"])
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Filled]:
    """
    A filled Barnabas, and a filled Apache Kafka.
    """
    java = Java()
    with request.param(tmp_path_factory.mktemp("broker"), settings=SETTINGS) as broker:
        yield _fill(Filled(broker), java)


def _fill(filled: Filled, java: Java) -> Filled:
    librdkafka, python = Confluent(), KafkaPython()
    bootstrap = filled.broker.bootstrap
    for topic in ("plain", "transactions"):
        librdkafka.create_topic(bootstrap, topic, PARTITIONS, {})
    librdkafka.create_topic(bootstrap, "compacted", PARTITIONS, COMPACTED)
    for codec in CODECS:
        filled.send(java, "plain", 17_000, codec)
        filled.send(librdkafka, "plain", 16_500, codec)
        filled.send(python, "plain", 1_500, codec)
    for producer, codec in ((java, "lz4"), (librdkafka, "zstd"), (python, "gzip")):
        filled.transact(producer, "transactions", 2_000, codec)
    # The Java client first, for its batches are small whatever the machine does: one batch with all
    # timestamps at the beginning would leave nothing to roll for.
    for producer, count in ((java, 9_000), (python, 1_500), (librdkafka, 8_500)):
        filled.send(producer, "compacted", count, "snappy", keyed=True)
    assert 200_000 == filled.sent
    _expect_cleaning(filled)
    return filled


def _expect_cleaning(filled: Filled) -> None:
    """
    Wait for the cleaner, and expect only the latest record of each key in what it has cleaned.
    """
    cleaned = {
        partition: _cleaned_up_to(filled.broker.data, partition) for partition in range(PARTITIONS)
    }
    latest: dict[object, Seen] = {}
    for seen in sorted(filled.expected["compacted"]):
        is_cleaned = seen.offset < cleaned[seen.partition]
        latest[(seen.partition, seen.key if is_cleaned else seen.offset)] = seen
    filled.expected["compacted"] = [*latest.values()]


def _cleaned_up_to(data: Path, partition: int) -> int:
    """
    The first offset of the active segment, once the cleaner has reached it.
    """
    deadline = time.monotonic() + PATIENCE
    active = max(int(path.stem) for path in (data / f"compacted-{partition}").glob("*.log"))
    assert active > 0
    while _checkpoint(data).get(("compacted", partition), 0) < active:
        assert time.monotonic() < deadline, _checkpoint(data)
        time.sleep(0.1)
    return active


def _checkpoint(data: Path) -> dict[tuple[str, int], int]:
    path = data / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    fields = [line.rsplit(" ", 2) for line in lines]
    return {(topic, int(partition)): int(offset) for topic, partition, offset in fields}


@pytest.mark.parametrize("topic", ["plain", "transactions", "compacted"])
def test_connector_and_files_return_what_was_sent(
    spark: SparkSession, filled: Filled, topic: str
) -> None:
    expected = table(filled.expected[topic])
    assert 0 < len(expected) < 200_000
    connector = spark.read.format("kafka").options(
        **{
            "kafka.bootstrap.servers": filled.broker.bootstrap,
            "kafka.isolation.level": "read_committed",
            "kafka.max.poll.records": "20000",
            "kafka.fetch.max.wait.ms": "20",
            "subscribe": topic,
            "includeHeaders": "true",
        }
    )
    files = spark.read.format("barnabas").options(
        subscribe=topic,
        isolationLevel="read_committed",
        readUpTo="logEnd",
        includeHeaders=True,
    )

    assert_same(expected, rows(connector.load()))
    assert_same(expected, rows(files.load(str(filled.broker.data))))


def test_documented_program_reads_what_the_files_have(spark: SparkSession, filled: Filled) -> None:
    (program, *_) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    program = program.replace("localhost:9092", filled.broker.bootstrap)
    names: dict[str, Any] = {"spark": spark}

    exec(program.replace('"orders"', '"plain"'), names)  # what a reader does

    assert_same(table(filled.expected["plain"]), rows(names["orders"]))


def test_files_of_a_stopped_broker_have_the_same_records(filled: Filled, tmp_path: Path) -> None:
    filled.broker.stop()
    data = str(filled.broker.data)
    options = {"isolationLevel": "read_committed"}
    for topic, expected in filled.expected.items():
        found = scan(data, {**options, "subscribe": topic}, columns=COLUMNS)
        assert_same(table(expected), in_order(pa.Table.from_batches(found)))

    for topic in ("plain", "transactions", "compacted"):
        compact(None, data, tmp_path, {"subscribe": topic})
        latest = {
            (seen.partition, seen.key): seen
            for seen in sorted(filled.expected[topic])
            if seen.key is not None
        }
        kept = [seen for seen in latest.values() if seen.value is not None]
        compacted = [(each.partition, each.records) for each in Snapshots(tmp_path).topics[topic]]
        assert compacted == [
            (partition, sum(seen.partition == partition for seen in kept))
            for partition in range(PARTITIONS)
        ]


def rows(frame: DataFrame) -> pa.Table:
    return in_order(frame.select(*COLUMNS).toArrow())


def table(expected: Iterable[Seen]) -> pa.Table:
    columns: list[Any] = [*zip(*expected, strict=True)]
    columns[2] = [ms * 1000 for ms in columns[2]]
    columns[5] = [
        [{"key": name, "value": value} for name, value in headers] or None for headers in columns[5]
    ]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)]
    return in_order(pa.table(arrays, schema=SCHEMA))


def in_order(found: pa.Table) -> pa.Table:
    columns = [found.column(name).cast(SCHEMA.field(name).type) for name in COLUMNS]
    sorted_by = [("partition", "ascending"), ("offset", "ascending")]
    return pa.table(columns, schema=SCHEMA).sort_by(sorted_by).combine_chunks()


def assert_same(expected: pa.Table, found: pa.Table) -> None:
    if expected.equals(found):
        return
    assert len(expected) == len(found)
    pairs = zip(expected.to_pylist(), found.to_pylist(), strict=True)
    wanted, other = next(pair for pair in pairs if pair[0] != pair[1])
    assert wanted == other
