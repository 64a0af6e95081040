"""
Reading from and writing to a broker with the source ``barnabas``: without a jar.

The rules are those of Apache Spark's connector, so the tests of it are run again here.
``BARNABAS_INTEROP_BROKER=apache`` runs them against Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from barnabas.pipeline import register
from tests.interop.conftest import new_broker
from tests.pipeline.connector.conftest import Connector
from tests.support.broker_process import BrokerProcess


class Live(Connector):
    format = "barnabas"
    no_offset = "no record from the starting timestamp on"
    lost = "is to start at|are gone"
    too_large = "does not take row 0 of task [01], key None: MESSAGE_TOO_LARGE"
    no_topic = "The cluster has no topic batch.unknown"


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with new_broker(tmp_path_factory.mktemp("broker"), log__retention__ms="-1") as broker:
        yield broker


@pytest.fixture
def connector(spark: SparkSession, broker: BrokerProcess) -> Live:
    register(spark)
    return Live(spark, broker)
