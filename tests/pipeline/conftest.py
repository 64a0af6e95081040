"""
One Spark session for all tests of the pipeline, and S3.

The session takes ten seconds to start and more than a gigabyte of memory, so there is one in a test
run: the files with ``pytest.mark.spark`` all run in the same process (see ``tests/conftest.py``).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.conftest import SPARK_MARK
from tests.support.s3_server import S3Server, s3_server
from tests.support.spark import start_session


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    Spark needs Java, and its connector to Kafka comes from a package registry.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            if item.get_closest_marker("spark") is None:
                raise pytest.UsageError(f"{item.path} needs pytestmark = {SPARK_MARK}")
            item.add_marker(pytest.mark.interop)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """
    The session: two tasks at a time, times in UTC, Apache Spark's Kafka connector among its jars.
    """
    session = start_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    return spark.newSession()


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server
