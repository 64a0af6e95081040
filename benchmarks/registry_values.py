"""
Decoding values that were written with a schema registry, and encoding them again.

    python -m benchmarks.registry_values                  1,000,000 records, one core
    python -m benchmarks.registry_values --records 100000 --passes 5

A record is an order of about 36 bytes: a long, two strings of which one may be null, and a double.
Half of the records have an older schema without the second string. First without Spark, where a
batch has 10,000 values, as Spark's have; then in Spark, from a log directory to the ``noop`` sink,
with the same query without decoding beside it. The deserializers of confluent-kafka get the same
bytes, one after the other.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import struct
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import fastavro
import pyarrow as pa
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.message_factory import GetMessageClass

from barnabas.pipeline import from_registry
from barnabas.pipeline.values.decoding import ValueDecoder
from barnabas.pipeline.values.encoding import encoder
from barnabas.pipeline.values.protobuf import ProtobufFile
from barnabas.pipeline.values.registry import FetchedSchema, Registry, RegistryAddress
from barnabas.protocol.records.record import SimpleRecord
from benchmarks.pipeline import Cost, measured, one_core
from benchmarks.procfs import adopt_orphans
from tests.support.log_directory import WrittenDirectory, append
from tests.support.schema_registry import SchemaRegistry
from tests.support.segments import FIRST_TIMESTAMP
from tests.support.spark import start_session

_BATCH: Final = 10_000
_IN_A_BATCH: Final = 100
_SLOW: Final = 10
"""What goes value by value is measured with so many times fewer of them."""

_FIELDS: Final[list[dict[str, Any]]] = [
    {"name": "id", "type": "long"},
    {"name": "customer", "type": "string"},
    {"name": "amount", "type": "double"},
]
_NOTE: Final[dict[str, Any]] = {"name": "note", "type": ["null", "string"], "default": None}
AVRO: Final = [
    {"type": "record", "name": "Order", "fields": fields} for fields in (_FIELDS, [*_FIELDS, _NOTE])
]
_TYPES: Final = {"id": "integer", "customer": "string", "amount": "number", "note": "string"}
JSON_SCHEMA: Final = {
    "title": "Order",
    "type": "object",
    "properties": {name: {"type": kind} for name, kind in _TYPES.items()},
}
PROTOBUF: Final = FileDescriptorProto(
    name="order.proto",
    syntax="proto3",
    message_type=[
        DescriptorProto(
            name="Order",
            field=[
                FieldDescriptorProto(name=name, number=number, type=kind, label="LABEL_OPTIONAL")
                for number, (name, kind) in enumerate(
                    {
                        "id": "TYPE_INT64",
                        "customer": "TYPE_STRING",
                        "amount": "TYPE_DOUBLE",
                        "note": "TYPE_STRING",
                    }.items(),
                    1,
                )
            ],
        )
    ],
)


def order(number: int) -> dict[str, Any]:
    """
    An order, of which every second one has a note.
    """
    with_note = {"note": "express"} if number % 4 == 1 else {}
    return {
        "id": number,
        "customer": f"customer {number % 1000}",
        "amount": number / 7,
        **with_note,
    }


def avro_values(ids: list[int], records: int) -> list[bytes]:
    schemas = [fastavro.parse_schema(schema) for schema in AVRO]
    found = []
    for number in range(records):
        file = BytesIO(struct.pack(">bI", 0, ids[number % 2]))
        file.seek(0, os.SEEK_END)
        fastavro.schemaless_writer(file, schemas[number % 2], order(number))
        found.append(file.getvalue())
    return found


def json_values(schema_id: int, records: int) -> list[bytes]:
    front = struct.pack(">bI", 0, schema_id)
    return [front + json.dumps(order(number)).encode() for number in range(records)]


def protobuf_values(schema: FetchedSchema, schema_id: int, records: int) -> list[bytes]:
    made = GetMessageClass(ProtobufFile(schema).message([0]))
    front = struct.pack(">bI", 0, schema_id) + b"\0"
    return [front + made(**order(number)).SerializeToString() for number in range(records)]


def show(title: str, records: int, cost: Cost) -> None:
    print(
        f"{title:44}{cost.wall:7.2f} s {records / cost.wall:12,.0f} values/s    "
        f"per CPU second: {records / max(cost.cpu, 0.01):12,.0f}",
        flush=True,
    )


def decoding(decoder: ValueDecoder, values: list[bytes]) -> Callable[[], None]:
    column = pa.array(values, pa.binary())

    def run() -> None:
        for start in range(0, len(column), _BATCH):
            assert not decoder.decode(column.slice(start, _BATCH)).errors

    return run


def encoding(decoder: ValueDecoder, schema_id: int, values: list[bytes]) -> Callable[[], None]:
    column = decoder.decode(pa.array(values, pa.binary())).column
    encode = encoder(decoder.schema, schema_id)

    def run() -> None:
        for start in range(0, len(column), _BATCH):
            encode(column.slice(start, _BATCH))

    return run


def without_spark(url: str, registry: Registry, ids: dict[str, list[int]], options: Any) -> None:
    """
    Each format in this process, on one core.
    """
    records, fewer = options.records, options.records // _SLOW
    values = {
        "avro": avro_values(ids["avro"], records),
        "json": json_values(ids["json"][0], fewer),
        "protobuf": protobuf_values(registry.schema(ids["protobuf"][0]), ids["protobuf"][0], fewer),
    }
    for name, some in values.items():
        decoder = ValueDecoder(registry, registry.schema(ids[name][-1]))
        show(f"decode {name}", len(some), measured(options.passes, decoding(decoder, some)))
        run = encoding(decoder, ids[name][-1], some[:fewer])
        show(f"encode {name}", fewer, measured(options.passes, run))
    with SchemaRegistryClient({"url": url}) as client:
        deserialize = AvroDeserializer(client, json.dumps(AVRO[-1]))
        context = SerializationContext("orders", MessageField.VALUE)

        def one_by_one() -> None:
            for value in values["avro"][:fewer]:
                deserialize(value, context)

        show("confluent-kafka's AvroDeserializer", fewer, measured(options.passes, one_by_one))


def in_spark(url: str, ids: dict[str, list[int]], directory: Path, options: Any) -> None:
    """
    Avro, from a log directory to rows of Spark.
    """
    values = avro_values(ids["avro"], options.records)
    written = WrittenDirectory(directory / "logs")
    log = written.log("orders", segment_bytes=64 << 20)
    for start in range(0, len(values), _IN_A_BATCH):
        some = values[start : start + _IN_A_BATCH]
        append(log, [SimpleRecord(FIRST_TIMESTAMP, None, value) for value in some])
    written.stop()
    spark = start_session(directory, cores=1, memory="2g", java_options="")

    def query(decoded: bool) -> None:
        frame = spark.read.format("barnabas").schema("value binary").load(str(written.path))
        if decoded:
            frame = from_registry(frame, registry=url, schema_id=ids["avro"][-1])
        frame.write.format("noop").mode("overwrite").save()

    show("Spark, values as they are", len(values), measured(options.passes, lambda: query(False)))
    show("Spark, decoded", len(values), measured(options.passes, lambda: query(True)))
    spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--only", choices=["decode", "spark"])
    options = parser.parse_args()
    adopt_orphans()
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-values-") as name,
        SchemaRegistry() as running,
        RegistryAddress.of(running.url).open() as registry,
        one_core(),
    ):
        text = base64.b64encode(PROTOBUF.SerializeToString()).decode()
        ids = {
            "avro": [registry.register("avro", "AVRO", json.dumps(schema)) for schema in AVRO],
            "json": [registry.register("json", "JSON", json.dumps(JSON_SCHEMA))],
            "protobuf": [registry.register("protobuf", "PROTOBUF", text)],
        }
        if options.only in (None, "decode"):
            without_spark(running.url, registry, ids, options)
        if options.only in (None, "spark"):
            in_spark(running.url, ids, Path(name), options)


if __name__ == "__main__":
    main()
