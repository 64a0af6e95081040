"""
One Spark session for all tests of the pipeline.

It takes ten seconds to start and more than a gigabyte of memory, so there is one in a test run: the
tests in this folder all run in the same process (see ``tests/conftest.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.interop.conftest import unavailable
from tests.support.maven import PrerequisiteMissing
from tests.support.spark import start_session


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    Spark needs Java, and its connector to Kafka comes from a package registry.
    """
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.interop)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """
    The session: two tasks at a time, times in UTC, Apache Spark's Kafka connector among its jars.
    """
    try:
        session = start_session(tmp_path_factory.mktemp("spark"))
    except PrerequisiteMissing as missing:
        unavailable(str(missing))
    yield session
    session.stop()
