"""
A column of a DataFrame as bytes that the deserializers of a schema registry read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from barnabas.pipeline.values.encoding import encoder
from barnabas.pipeline.values.registry import FetchedSchema, RegistryAddress


def to_registry(
    frame: DataFrame,
    column: str = "value",
    *,
    registry: str | Mapping[str, Any],
    subject: str,
    schema: str | None = None,
    format: str = "AVRO",
) -> DataFrame:
    """
    *frame* with *column* encoded: a struct whose fields are those of the schema.

    Args:
        registry: its URL, or settings of confluent-kafka's ``SchemaRegistryClient``.
        subject: whose latest schema the values have, as ``orders-value``.
        schema: another schema that they have; it is registered as a version of the subject now.
        format: what *schema* is: ``AVRO`` or ``JSON``.

    Raises:
        RegistryError: the registry does not answer, has no such subject, or refuses the schema.
        UnusableSchema: values of the schema cannot be written.
    """
    with RegistryAddress.of(registry).open() as opened:
        if schema is not None:
            schema_id = opened.register(subject, format.upper(), schema)
        else:
            schema_id = opened.latest_id(subject)
        fetched = opened.schema(schema_id)
    encoder(fetched, schema_id)  # Does it work at all?
    # PySpark warns where the kind is not in the hints of the function, and its stubs want it here.
    udf = arrow_udf(_function(fetched, schema_id), "binary")  # type: ignore[call-overload]
    return frame.withColumn(column, udf(F.col(f"`{column}`")))


def _function(schema: FetchedSchema, schema_id: int) -> Any:
    made: list[Callable[[pa.Array], pa.Array]] = []

    def encode(column: pa.Array) -> pa.Array:
        if not made:
            made.append(encoder(schema, schema_id))
        return made[0](column)

    return encode
