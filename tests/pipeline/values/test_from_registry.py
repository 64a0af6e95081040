"""
``from_registry`` in Spark: records that confluent-kafka's serializers wrote to a broker are the
rows that its deserializers make of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from barnabas.pipeline import from_registry
from barnabas.pipeline.values.errors import UnusableSchema
from barnabas.pipeline.values.registry import RegistryAddress, RegistryError, UnknownSchema
from tests.interop.conftest import new_broker
from tests.pipeline.values.avro_types import array, logical, record
from tests.pipeline.values.messages import F, classes, field, file, message
from tests.support.schema_registry import SchemaRegistry

pytestmark = [pytest.mark.spark, pytest.mark.prove]

PATIENCE = 60
SERIALIZER = {"auto.register.schemas": True}
V1 = record("shop.Order", id="long", customer="string", amount="int")
V2 = record(
    "shop.Order",
    customer=(["null", "string"], None),
    amount="double",
    id="long",
    tags=({"type": "map", "values": "int"}, {"none": 0}),
    at=(["null", logical("timestamp-millis")], None),
)
JSON_SCHEMA = {
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "customer": {"type": ["string", "null"]},
        "lines": {
            "type": "array",
            "items": {"type": "object", "properties": {"price": {"type": "number"}}},
        },
    },
}
WIDER_JSON_SCHEMA = {
    **JSON_SCHEMA,
    "properties": {**JSON_SCHEMA["properties"], "note": {"type": "string"}},  # type: ignore[dict-item]
}
ORDER = [field("id", 1, F.TYPE_INT64), field("customer", 2, F.TYPE_STRING)]
LINE = message("Line", [field("price", 1, F.TYPE_DOUBLE)])
OLD_ORDERS = classes(file("old.proto", [message("Other", []), message("Order", ORDER)]))
ORDERS = classes(
    file(
        "new.proto",
        [
            message(
                "Order",
                [*ORDER, field("lines", 3, "shop.Order.Line", repeated=True)],
                nested_type=[LINE],
            )
        ],
    )
)


def avro(client: SchemaRegistryClient, schema: Any, **options: Any) -> Callable[..., Any]:
    made: Callable[..., Any] = AvroSerializer(
        client, json.dumps(schema), conf={**SERIALIZER, **options}
    )
    return made


def protobuf(client: SchemaRegistryClient, kind: Any, **options: Any) -> Callable[..., Any]:
    made: Callable[..., Any] = ProtobufSerializer(kind, client, {**SERIALIZER, **options})
    return made


def plain(value: Any, _: SerializationContext) -> Any:
    return value


class Topics:
    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap})

    def write(self, topic: str, serialize: Callable[..., Any], values: list[Any]) -> None:
        for value in values:
            headers: list[tuple[str, str | bytes | None]] = []
            context = SerializationContext(topic, MessageField.VALUE, headers)
            self._producer.produce(
                topic, serialize(value, context), partition=0, headers=headers or None
            )
        assert self._producer.flush(PATIENCE) == 0


@pytest.fixture(scope="module")
def client(registry: SchemaRegistry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory, client: SchemaRegistryClient) -> Iterator[Path]:
    broker = new_broker(tmp_path_factory.mktemp("broker"))
    broker.start()
    topics = Topics(broker.bootstrap)
    old = [{"id": n, "customer": f"customer {n}", "amount": n} for n in range(500)]
    new = [
        {
            "id": n,
            "customer": f"customer {n}" if n % 3 else None,
            "amount": n / 7,
            "tags": {str(n): n},
            "at": n if n % 2 else None,
        }
        for n in range(500)
    ]
    topics.write("avro", avro(client, V1), old)
    topics.write("avro", avro(client, V2), new)
    topics.write("avro", plain, [None])
    topics.write("avro", avro(client, V1), old[:20])
    by_guid = {"schema.id.serializer": header_schema_id_serializer}
    topics.write("guids", avro(client, V1), old[:5])
    topics.write("guids", avro(client, V2, **by_guid), new[:5])
    rows = [{"id": n, "customer": None, "lines": [{"price": n / 7}] * (n % 3)} for n in range(50)]
    topics.write("json", JSONSerializer(json.dumps(JSON_SCHEMA), client), rows)
    noted = [{**row, "note": "new"} for row in rows]
    topics.write("json", JSONSerializer(json.dumps(WIDER_JSON_SCHEMA), client), noted)
    old_order, order = OLD_ORDERS["shop.Order"], ORDERS["shop.Order"]
    messages = [old_order(id=n, customer="x" * (n % 3)) for n in range(50)]
    topics.write("protobuf", protobuf(client, old_order), messages)
    messages = [order(id=n, customer="y", lines=[{"price": n / 7}] * (n % 3)) for n in range(50)]
    topics.write("protobuf", protobuf(client, order), messages)
    topics.write("protobuf-guids", protobuf(client, order, **by_guid), messages[:5])
    good: bytes = avro(client, V1)(old[3], SerializationContext("bad", MessageField.VALUE))
    bad = [good, good[:-1], b"text", b"", b"\0\0\0", b"\0\0\0\x03\xe7" + good[5:], None, good]
    topics.write("bad", plain, bad)
    del topics
    broker.stop()
    yield broker.data
    broker.close()


@pytest.fixture(scope="module")
def session(spark: SparkSession, logs: Path) -> SparkSession:
    return spark


def loaded(session: SparkSession, logs: Path, topic: str, **options: Any) -> DataFrame:
    reader = session.read.format("barnabas").options(**options)
    return reader.option("subscribe", topic).load(str(logs)).orderBy("offset")


def as_objects(value: Any) -> Any:
    if isinstance(value, Row):
        return {name: as_objects(item) for name, item in value.asDict().items()}
    return [as_objects(item) for item in value] if isinstance(value, list) else value


def compare(
    frame: DataFrame, decoded: DataFrame, deserialize: Callable[..., Any], topic: str
) -> None:
    rows, raw = decoded.collect(), frame.collect()
    context = SerializationContext(topic, MessageField.VALUE)
    expected = [
        None if row.value is None else deserialize(bytes(row.value), context) for row in raw
    ]

    assert expected == [as_objects(row.value) for row in rows]
    assert [row.offset for row in raw] == [row.offset for row in rows]


def test_avro_of_several_schemas_is_read_with_the_latest(
    session: SparkSession, logs: Path, registry: SchemaRegistry, client: SchemaRegistryClient
) -> None:
    frame = loaded(session, logs, "avro")

    decoded = from_registry(frame, registry=registry.url, subject="avro-value")

    assert (
        "struct<customer:string,amount:double,id:bigint,tags:map<string,int>,at:timestamp>"
        == decoded.schema["value"].dataType.simpleString()
    )
    assert frame.columns == decoded.columns
    assert 1021 == decoded.count()
    without_zone = decoded.withColumn(
        "value", decoded.value.withField("at", decoded.value.at.cast("string"))
    )
    deserialize = AvroDeserializer(client, json.dumps(V2))

    def with_text(data: bytes, context: SerializationContext) -> Any:
        found = deserialize(data, context)
        at = found["at"]
        text = at and f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03}".rstrip("0").rstrip(".")
        return {**found, "at": text}

    compare(frame, without_zone, with_text, "avro")


def test_avro_is_read_with_an_older_schema(
    session: SparkSession, logs: Path, registry: SchemaRegistry
) -> None:
    """
    By version and by id; a double cannot be read as an int.
    """
    frame = loaded(session, logs, "avro").limit(500)
    by_id = registry.schemas.versions("avro-value")[0]

    for which in ({"subject": "avro-value", "version": 1}, {"schema_id": by_id}):
        decoded = from_registry(frame, registry=registry.url, **which)

        kind = "struct<id:bigint,customer:string,amount:int>"
        assert kind == decoded.schema["value"].dataType.simpleString()
        assert [(499, "customer 499", 499)] == [
            tuple(row) for row in decoded.filter("value.id = 499").select("value.*").collect()
        ]
    with pytest.raises(PySparkException, match="a value of type double was written"):
        from_registry(
            loaded(session, logs, "avro"),
            registry=registry.url,
            subject="avro-value",
            version=1,
        ).collect()


def test_guids_in_headers_identify_schemas(
    session: SparkSession, logs: Path, registry: SchemaRegistry
) -> None:
    frame = loaded(session, logs, "guids", includeHeaders=True)

    decoded = from_registry(frame, registry=registry.url, subject="avro-value")

    assert [*range(5)] * 2 == [row.value.id for row in decoded.collect()]
    frame = loaded(session, logs, "protobuf-guids", includeHeaders=True)
    decoded = from_registry(frame, registry=registry.url, subject="protobuf-value")
    assert [*range(5)] == [row.value.id for row in decoded.collect()]


def test_json_of_several_schemas_is_read_with_the_latest(
    session: SparkSession, logs: Path, registry: SchemaRegistry, client: SchemaRegistryClient
) -> None:
    frame = loaded(session, logs, "json")
    deserialize = JSONDeserializer(None, schema_registry_client=client)

    decoded = from_registry(frame, registry=registry.url, subject="json-value")

    assert (
        "struct<id:bigint,customer:string,lines:array<struct<price:double>>,note:string>"
        == decoded.schema["value"].dataType.simpleString()
    )
    compare(frame, decoded, lambda *given: {"note": None, **deserialize(*given)}, "json")


def test_protobuf_of_several_schemas_is_read_with_the_latest(
    session: SparkSession, logs: Path, registry: SchemaRegistry
) -> None:
    """
    The older schema has the message at another index.
    """
    frame = loaded(session, logs, "protobuf")
    deserialize = ProtobufDeserializer(ORDERS["shop.Order"], {"use.deprecated.format": False})

    def as_dict(*given: Any) -> Any:
        found = deserialize(*given)
        lines = [{"price": line.price} for line in found.lines]
        return {"id": found.id, "customer": found.customer, "lines": lines}

    decoded = from_registry(frame, registry=registry.url, subject="protobuf-value")

    compare(frame, decoded, as_dict, "protobuf")


ALL_TYPES: dict[str, tuple[Any, str]] = {
    "nothing": ("null", "void"),
    "flag": ("boolean", "boolean"),
    "single": ("float", "float"),
    "raw": ("bytes", "binary"),
    "day": (logical("date", "int"), "date"),
    "local": (logical("local-timestamp-micros"), "timestamp_ntz"),
    "price": (logical("decimal", "bytes", precision=6, scale=2), "decimal(6,2)"),
    "state": ({"type": "enum", "name": "State", "symbols": ["OPEN", "SHUT"]}, "string"),
    "hash": ({"type": "fixed", "name": "Hash", "size": 2}, "binary"),
    "many": (array(["null", "long"]), "array<bigint>"),
    "either": (["null", "string", "int"], "struct<member0:string,member1:int>"),
}


@pytest.mark.parametrize("large", ["false", "true"])
def test_all_types_are_supported_in_spark(
    spark: SparkSession, registry: SchemaRegistry, client: SchemaRegistryClient, large: str
) -> None:
    value = {
        "nothing": None,
        "flag": True,
        "single": 0.5,
        "raw": b"\1",
        "day": date(2026, 1, 31),
        "local": datetime(2026, 1, 31, 12, 0, 0, 7),
        "price": Decimal("-12.34"),
        "state": "SHUT",
        "hash": b"\1\2",
        "many": [1, None],
        "either": 5,
    }
    serialize = avro(client, record("All", **{name: of for name, (of, _) in ALL_TYPES.items()}))
    written = serialize(value, SerializationContext("all", MessageField.VALUE))
    session = spark.newSession()
    session.conf.set("spark.sql.execution.arrow.useLargeVarTypes", large)
    frame = session.createDataFrame([(written,), (None,)], "value binary")

    decoded = from_registry(frame, registry=registry.url, subject="all-value")

    kind = ",".join(f"{name}:{of}" for name, (_, of) in ALL_TYPES.items())
    assert f"struct<{kind}>" == decoded.schema["value"].dataType.simpleString()
    found, empty = (as_objects(row.value) for row in decoded.collect())
    assert {**value, "either": {"member0": None, "member1": 5}} == found
    assert empty is None


BAD = {
    1: "It ends in the middle of a field.",
    2: "It begins with 0x74, so it was not written with a schema registry.",
    3: "It is empty, so it was not written with a schema registry.",
    4: "It has 3 bytes, which is too few for the id of a schema.",
    5: "has no schema 999.",
}


def test_permissive_mode_returns_null_with_an_error(
    session: SparkSession, logs: Path, registry: SchemaRegistry
) -> None:
    frame = loaded(session, logs, "bad")

    rows = from_registry(
        frame, registry=registry.url, subject="avro-value", mode="PERMISSIVE"
    ).collect()

    assert [*range(8)] == [row.offset for row in rows]
    assert [0, 7] == [row.offset for row in rows if row.value is not None]
    sentences = {row.offset: row._corrupt_record for row in rows if row._corrupt_record}
    assert BAD.keys() == sentences.keys()
    for offset, sentence in BAD.items():
        assert sentences[offset].endswith(sentence)


def test_errors_of_the_source_are_kept(session: SparkSession, registry: SchemaRegistry) -> None:
    """
    Rows of corrupt batches have no value, and stay in all modes.
    """
    rows = [(b"text", None), (None, "a batch")]
    frame = session.createDataFrame(rows, "value binary, _corrupt_record string")

    def sentences(mode: str) -> list[str]:
        decoded = from_registry(frame, registry=registry.url, subject="avro-value", mode=mode)
        assert frame.columns == decoded.columns
        return [row._corrupt_record for row in decoded.collect()]

    assert [BAD[2], "a batch"] == sentences("PERMISSIVE")
    assert ["a batch"] == sentences("DROPMALFORMED")


def test_dropmalformed_mode_drops_malformed_rows(
    session: SparkSession, logs: Path, registry: SchemaRegistry
) -> None:
    frame = loaded(session, logs, "bad")

    decoded = from_registry(
        frame, registry=registry.url, subject="avro-value", mode="dropmalformed"
    )

    assert [0, 6, 7] == [row.offset for row in decoded.collect()]
    assert "_corrupt_record" not in decoded.columns


def test_failfast_mode_names_the_record(
    session: SparkSession, logs: Path, registry: SchemaRegistry
) -> None:
    frame = loaded(session, logs, "bad")
    schema_id = registry.schemas.versions("avro-value")[0]
    place = "topic bad, partition 0, offset"

    for first, reason in ((0, f"1: Schema {schema_id}: It ends"), (5, "5: .* has no schema 999")):
        with pytest.raises(PySparkException, match=f"{place} {reason}"):
            from_registry(
                frame.filter(f"offset >= {first}"), registry=registry.url, subject="avro-value"
            ).collect()


def test_worker_requests_a_schema_once(
    session: SparkSession, logs: Path, client: SchemaRegistryClient, registry: SchemaRegistry
) -> None:
    frame = loaded(session, logs, "avro").repartition(8)
    with SchemaRegistry() as other:
        other.schemas = registry.schemas
        for _ in range(3):
            assert 1020 == (
                from_registry(frame, registry=other.url, subject="avro-value")
                .filter("value.id >= 0")
                .count()
            )

        ids = {path: times for path, times in other.asked.items() if "/ids/" in path}

    assert ids
    assert max(ids.values()) <= 2 * session.sparkContext.defaultParallelism


def test_unreachable_registry_is_reported_after_few_attempts(
    session: SparkSession, logs: Path, registry: SchemaRegistry
) -> None:
    """
    Also in ``PERMISSIVE`` mode, because the records are not at fault.
    """
    frame = loaded(session, logs, "avro")
    with SchemaRegistry() as other:
        other.schemas = registry.schemas
        settings = {"url": other.url, "max.retries": 1, "retries.wait.ms": 1}
        decoded = from_registry(frame, registry=settings, subject="avro-value", mode="PERMISSIVE")

    with pytest.raises(PySparkException, match=f"{other.url} does not answer"):
        decoded.collect()
    with pytest.raises(RegistryError, match=f"{other.url} does not answer"):
        from_registry(frame, registry=settings, subject="avro-value")


def test_column_to_decode_must_be_given(
    session: SparkSession, logs: Path, registry: SchemaRegistry
) -> None:
    frame = loaded(session, logs, "avro")
    url = registry.url

    with pytest.raises(UnknownSchema, match="has no schema nothing"):
        from_registry(frame, registry=url, subject="nothing")
    with pytest.raises(ValueError, match="Either subject or schema_id"):
        from_registry(frame, registry=url)
    with pytest.raises(ValueError, match="mode is one of FAILFAST, DROPMALFORMED, PERMISSIVE"):
        from_registry(frame, registry=url, subject="avro-value", mode="skip")
    with pytest.raises(ValueError, match="need a url"):
        from_registry(frame, registry={"timeout": 1}, subject="avro-value")
    with pytest.raises(UnusableSchema, match="has no message Nothing; it has Order"):
        from_registry(frame, registry=url, subject="protobuf-value", message="Nothing")


def test_key_is_decoded_in_another_time_zone(
    session: SparkSession, logs: Path, registry: SchemaRegistry
) -> None:
    other = session.newSession()
    other.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    frame = loaded(other, logs, "avro").selectExpr("value as key", "offset")

    decoded = from_registry(frame, "key", registry=registry.url, subject="avro-value")

    last = decoded.selectExpr("max(unix_millis(key.at))").collect()
    assert [(499,)] == [tuple(row) for row in last]


def test_values_are_decoded_once(
    session: SparkSession, registry: SchemaRegistry, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = session.createDataFrame([], "value binary, partition int")

    for mode in ("FAILFAST", "DROPMALFORMED", "PERMISSIVE"):
        decoded = from_registry(frame, registry=registry.url, subject="avro-value", mode=mode)
        decoded.filter("value.id = 1").filter("value.amount > 2").select("value.*").explain()
        assert 1 == capsys.readouterr().out.count("ArrowEvalPython")
    decoded.select("partition").explain()
    assert 0 == capsys.readouterr().out.count("ArrowEvalPython")


def test_stream_is_decoded(
    session: SparkSession, logs: Path, registry: SchemaRegistry, tmp_path: Path
) -> None:
    frame = (
        session.readStream.format("barnabas")
        .options(subscribe="avro", startingOffsets="earliest")
        .load(str(logs))
    )
    decoded = from_registry(frame, registry=registry.url, subject="avro-value")

    query = (
        decoded.select("value.*")
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "rows"), format="parquet")
    )
    query.awaitTermination()

    assert 1020 == session.read.parquet(str(tmp_path / "rows")).filter("id is not null").count()


def test_repr_of_a_registry_address_has_no_secret() -> None:
    settings = {"url": "http://user:secret@host:8081", "basic.auth.user.info": "user:secret"}

    assert "secret" not in repr(RegistryAddress.of(settings))
    assert "host:8081" in repr(RegistryAddress.of(settings))
