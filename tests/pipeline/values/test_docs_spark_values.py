"""
``docs/spark-values.md``: the examples run as they stand, and its tables are the code's.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import SparkSession

from barnabas.pipeline import from_registry
from barnabas.pipeline.options import Mode
from barnabas.pipeline.values.frames import KEY_HEADER, VALUE_HEADER
from barnabas.protocol.records.record import SimpleRecord
from tests.pipeline.values.avro_types import record
from tests.support.compiled import ROOT
from tests.support.log_directory import WrittenDirectory, append
from tests.support.schema_registry import SchemaRegistry

pytestmark = [pytest.mark.spark, pytest.mark.prove]

PAGE = (ROOT / "docs" / "spark-values.md").read_text()
SCHEMA = json.dumps(record("Order", id="long", customer="string"))


@pytest.fixture
def logs(registry: SchemaRegistry, tmp_path: Path) -> Path:
    with SchemaRegistryClient({"url": registry.url}) as client:
        serialize = AvroSerializer(client, SCHEMA)
        context = SerializationContext("orders", MessageField.VALUE)
        values = [serialize({"id": n, "customer": f"customer {n % 2}"}, context) for n in range(3)]
    directory = WrittenDirectory(tmp_path)
    append(directory.log("orders"), [SimpleRecord(0, None, value) for value in values])
    directory.stop()
    return tmp_path


def test_documented_programs_run(
    spark: SparkSession, registry: SchemaRegistry, logs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    programs = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}

    for program in programs:
        with_paths = program.replace("/tmp/data", str(logs))
        exec(with_paths.replace("http://localhost:8081", registry.url), names)

    assert len(programs) >= 4
    assert spark is names["spark"]
    shown = capfd.readouterr().out
    assert re.search(r"\| +2\| +2\|customer 0\|", shown)
    assert shown.endswith("2\n3\n"), "customers, and texts"
    again = from_registry(names["encoded"], registry=registry.url, subject="customers-value")
    assert {("customer 0", 2), ("customer 1", 1)} == {
        tuple(row) for row in again.select("value.*").collect()
    }


def test_documentation_describes_all_arguments() -> None:
    parameters = inspect.signature(from_registry).parameters
    table = re.findall(r"^\| (`.*?) \| (.*?) \|", PAGE.split("## Many")[0], re.MULTILINE)
    described = {
        name: default for names, default in table for name in re.findall(r"`(\w+)`", names)
    }

    assert list(parameters) == list(described)
    assert '`"value"`' == described["column"]
    assert '`"latest"`' == described["version"]
    assert f"`{parameters['mode'].default}`" == described["mode"]
    assert {mode.value for mode in Mode} == set(
        re.findall(r"^\| `([A-Z]+)` \|", PAGE, re.MULTILINE)
    )
    assert f"`{VALUE_HEADER}` or `{KEY_HEADER}`" in PAGE
