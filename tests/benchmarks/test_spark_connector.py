from __future__ import annotations

from unittest.mock import Mock

import pytest

from benchmarks import spark_connector
from benchmarks.loader import Loader
from tests.support.broker_process import BrokerProcess


@pytest.mark.parametrize(
    "name", ["1k", "1k-polls", "1k-defaults", "100", "100-polls", "100-defaults"]
)
def test_partitions_of_the_spark_benchmark_are_equally_large(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Spark reads each in one task, so an empty one would leave a core idle, except with files.
    """
    [query] = [query for query in spark_connector.queries(0.5) if query.name == name]
    monkeypatch.setattr(spark_connector, "Confluent", Mock())
    loader = Mock(spec=Loader)

    spark_connector.fill(query, Mock(spec=BrokerProcess, bootstrap="127.0.0.1:1"), loader)

    written = {call.kwargs["partition"]: call.args[2] for call in loader.produce.call_args_list}
    assert dict.fromkeys(range(query.partitions), query.count // query.partitions) == written
