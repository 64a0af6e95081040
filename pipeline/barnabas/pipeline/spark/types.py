"""
The columns of the rows in Spark's types.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.options import ReadOptions
from barnabas.pipeline.rows import all_columns, chosen
from barnabas.pipeline.schemas import HEADERS, TIMESTAMP

_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_TYPES: Final[dict[pa.DataType, DataType]] = {
    pa.binary(): BinaryType(),
    pa.bool_(): BooleanType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.string(): StringType(),
    TIMESTAMP: TimestampType(),
    HEADERS: ArrayType(_HEADER),
}


def spark_schema(schema: pa.Schema) -> StructType:
    return StructType([StructField(field.name, _TYPES[field.type]) for field in schema])


def chosen_columns(asked_for: StructType, options: ReadOptions) -> list[str]:
    """
    The names in a schema that the user gave.

    Raises:
        InvalidOption: a column is not there, or of another type. Nothing is converted.
    """
    names = chosen(asked_for.names, options)
    known = {field.name: field.dataType for field in spark_schema(all_columns(options))}
    for field in asked_for:
        if field.dataType != known[field.name]:
            there, wanted = known[field.name], field.dataType
            raise InvalidOption(
                f"The column {field.name} is {there.simpleString()}, not {wanted.simpleString()}."
            )
    return names
