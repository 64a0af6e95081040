"""
``to_registry``: confluent-kafka's deserializers read what it writes.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from barnabas.pipeline import from_registry, to_registry
from barnabas.pipeline.values.registry import UnknownSchema
from tests.pipeline.values.avro_types import array, logical, record
from tests.pipeline.values.messages import classes
from tests.pipeline.values.test_protobuf import RICH
from tests.support.schema_registry import SchemaRegistry

pytestmark = [pytest.mark.spark, pytest.mark.prove]

CONTEXT = SerializationContext("written", MessageField.VALUE)
AVRO = json.dumps(
    record(
        "Written",
        id="long",
        at=logical("timestamp-micros"),
        day=["null", logical("date", "int")],
        price=logical("decimal", "bytes", precision=6, scale=2),
        counts={"type": "map", "values": "int"},
        either=["null", "string", array("long")],
        more=("string", "default"),
    )
)
ROWS = """
    named_struct(
        'id', id, 'at', timestamp_micros(1000001 * id), 'day', date_from_unix_date(int(id)),
        'price', cast(id / 4 as decimal(6, 2)), 'counts', map('a', int(id)),
        'either', named_struct(
            'member0', if(id = 0, 'text', null), 'member1', if(id = 1, array(1L, 2L), null)
        )
    ) as value
"""


def values(frame: DataFrame) -> list[Any]:
    return [row.value and bytes(row.value) for row in frame.collect()]


def test_encoded_avro_is_read_by_confluents_deserializer_and_ours(
    spark: SparkSession, registry: SchemaRegistry
) -> None:
    frame = spark.range(3).selectExpr(ROWS).union(spark.sql("select null"))

    written = to_registry(frame, registry=registry.url, subject="avro-value", schema=AVRO)

    with SchemaRegistryClient({"url": registry.url}) as client:
        deserialize = AvroDeserializer(client)
        found = [deserialize(value, CONTEXT) for value in values(written)]
    either = ["text", [1, 2], None]
    assert [
        {
            "id": n,
            "at": datetime(1970, 1, 1, 0, 0, n, n, UTC),
            "day": date(1970, 1, n + 1),
            "price": Decimal(n) / 4,
            "counts": {"a": n},
            "either": either[n],
            "more": "default",
        }
        for n in range(3)
    ] == found[:3]
    assert found[3] is None
    again = from_registry(written, registry=registry.url, subject="avro-value")
    both = again.select("value.*").drop("more").collect(), frame.select("value.*").collect()
    assert [row.asDict(recursive=True) for row in both[0][:2]] == [
        row.asDict(recursive=True) for row in both[1][:2]
    ]


def test_encoded_json_is_read_by_confluents_deserializer(
    spark: SparkSession, registry: SchemaRegistry
) -> None:
    properties = {"id": {"type": "integer"}, "counts": {"type": "object"}}
    schema = json.dumps({"title": "J", "type": "object", "properties": properties})
    frame = spark.range(2).selectExpr(
        "named_struct('id', id, 'counts', map('ü', id), 'note', string(null)) as value"
    )

    written = to_registry(
        frame, registry=registry.url, subject="json-value", schema=schema, format="json"
    )

    with SchemaRegistryClient({"url": registry.url}) as client:
        deserialize = JSONDeserializer(None, schema_registry_client=client)
        found = [deserialize(value, CONTEXT) for value in values(written)]
    assert [{"id": n, "counts": {"ü": n}} for n in range(2)] == found


def test_encoded_protobuf_is_read_by_confluents_deserializer(
    spark: SparkSession, registry: SchemaRegistry
) -> None:
    made = classes(RICH)["shop.M"]
    wanted = made(
        at={"seconds": 5, "nanos": 7000},
        took={"seconds": 9},
        state=2,
        counts={"x": 1},
        parts={7: {"size": 3}},
        b=0,
        states=[0, 9],
        part={"size": 2**64 - 1},
    )
    with SchemaRegistryClient({"url": registry.url}) as client:
        serialize = ProtobufSerializer(made, client, {"use.deprecated.format": False})
        first = serialize(wanted, SerializationContext("protobuf", MessageField.VALUE))
        frame = from_registry(
            spark.createDataFrame([(first,)], "value binary"),
            registry=registry.url,
            subject="protobuf-value",
        )

        written = to_registry(frame, registry=registry.url, subject="protobuf-value")

        deserialize = ProtobufDeserializer(made, {"use.deprecated.format": False})
        assert [wanted] == [deserialize(value, CONTEXT) for value in values(written)]


def test_row_that_does_not_fit_the_schema_ends_the_query(
    spark: SparkSession, registry: SchemaRegistry
) -> None:
    frame = spark.range(1).selectExpr("named_struct('id', 'text') as value")

    written = to_registry(frame, registry=registry.url, subject="avro-value", schema=AVRO)

    with pytest.raises(PySparkException, match="A row does not fit its schema"):
        written.collect()
    with pytest.raises(UnknownSchema, match="has no schema nothing"):
        to_registry(frame, registry=registry.url, subject="nothing")
