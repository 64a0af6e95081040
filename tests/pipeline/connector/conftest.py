"""
Apache Spark's own connector to Kafka, reading from and writing to a broker.

``BARNABAS_INTEROP_BROKER=apache`` runs the same tests against Apache Kafka: what fails there says
nothing about Barnabas.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.interop.conftest import new_broker
from tests.pipeline.topics import Topic
from tests.support.broker_process import BrokerProcess

QUERY_FAILED: Final = (PySparkException, Py4JJavaError)
"""
What a failed query raises: PySpark translates Spark's exceptions, and not those of a connector.
"""


class Connector:
    """
    How a query names the broker and sees all columns.
    """

    format = "kafka"
    no_offset = "No offset matched"
    """What a query says that is to begin behind all records."""
    lost = "data may have been lost"
    too_large = "larger than the max"
    no_topic = "UnknownTopicOrPartition"

    def __init__(self, spark: SparkSession, broker: BrokerProcess) -> None:
        self.spark = spark
        self.bootstrap = broker.bootstrap
        self._options = {"kafka.bootstrap.servers": broker.bootstrap, "includeHeaders": "true"}

    def read(self, topic: Topic | None = None, **options: Any) -> DataFrame:
        reader = self.spark.read.format(self.format)
        return reader.options(**self._named(topic, options)).load()

    def stream(self, topic: Topic | None = None, **options: Any) -> DataFrame:
        reader = self.spark.readStream.format(self.format)
        options.setdefault("startingOffsets", "earliest")
        return reader.options(**self._named(topic, options)).load()

    def save(self, frame: DataFrame, **options: str) -> None:
        frame.write.format(self.format).mode("append").options(**self._options | options).save()

    def _named(self, topic: Topic | None, options: dict[str, Any]) -> dict[str, Any]:
        subscription = {} if topic is None else {"subscribe": topic.name}
        return self._options | subscription | options


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with new_broker(tmp_path_factory.mktemp("broker"), log__retention__ms="-1") as broker:
        yield broker


@pytest.fixture
def connector(spark: SparkSession, broker: BrokerProcess) -> Connector:
    return Connector(spark, broker)
