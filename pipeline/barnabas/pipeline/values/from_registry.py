"""
A column of bytes that was written with a schema registry, as a typed column of a DataFrame.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StringType, StructField, StructType

from barnabas.pipeline.options import Mode
from barnabas.pipeline.schemas import CORRUPT_COLUMN
from barnabas.pipeline.values.decoding import DecodedColumn, ValueDecoder
from barnabas.pipeline.values.errors import MalformedValue
from barnabas.pipeline.values.frames import KEY_HEADER, VALUE_HEADER, schema_headers
from barnabas.pipeline.values.registry import FetchedSchema, Registry, RegistryAddress

_PLACE: Final = ("topic", "partition", "offset")
_DECODED: Final = "decoded"
_ERROR: Final = "error"
_BOTH: Final = "_barnabas_decoded"


def from_registry(
    frame: DataFrame,
    column: str = "value",
    *,
    registry: str | Mapping[str, Any],
    subject: str | None = None,
    version: int | str = "latest",
    schema_id: int | None = None,
    message: str | None = None,
    mode: str = Mode.FAILFAST.value,
) -> DataFrame:
    """
    *frame* with *column* decoded.

    The schema that is read is fetched now; those that the values were written with, by the workers,
    each of which fetches a schema once.

    Args:
        registry: its URL, or settings of confluent-kafka's ``SchemaRegistryClient``.
        subject: whose schema is read, as ``orders-value``.
        version: which one of it.
        schema_id: the id of the schema that is read, in place of a subject.
        message: of Protobuf, the name of the message; by default the first one of the schema.
        mode: what becomes of a value that cannot be decoded. ``FAILFAST`` ends the query;
            ``DROPMALFORMED`` leaves its row out; ``PERMISSIVE`` makes a null of it, with the
            sentence in ``_corrupt_record``.

    Raises:
        RegistryError: the registry does not answer, or has no such schema.
        UnusableSchema: no columns can be made of the schema.
        ValueError: the arguments say nothing, or several things.
    """
    address = RegistryAddress.of(registry)
    parsed_mode = _mode(mode)
    with address.open() as opened:
        schema = _schema_to_read(opened, subject, version, schema_id)
        arrow = ValueDecoder(opened, schema, message).arrow
    work = _Decode(address, schema, message, arrow, parsed_mode, _header_of(frame, column))
    names = frame.columns
    inputs = [column, *(["headers"] if work.header else [])]
    if parsed_mode is Mode.FAILFAST:
        work.place = tuple(name for name in _PLACE if name in names)
        inputs += work.place
    result = StructType(
        [StructField(_DECODED, from_arrow_type(arrow)), StructField(_ERROR, StringType())]
    )
    # PySpark warns where the kind is not in the hints of the function, and its stubs want it here.
    udf = arrow_udf(work.function(), result)  # type: ignore[call-overload]
    # Or Spark would decode once for a filter and once more for the rows that are left.
    udf = udf.asNondeterministic()
    both = frame.withColumn(_BOTH, udf(*(F.col(f"`{name}`") for name in inputs)))
    if parsed_mode is Mode.DROPMALFORMED:
        both = both.filter(F.col(f"{_BOTH}.{_ERROR}").isNull())
    return both.select(*_columns(names, column, parsed_mode))


def _columns(names: list[str], column: str, mode: Mode) -> Iterator[Column]:
    error = F.col(f"{_BOTH}.{_ERROR}")
    for name in names:
        if name == column:
            yield F.col(f"{_BOTH}.{_DECODED}").alias(name)
        elif name == CORRUPT_COLUMN and mode is Mode.PERMISSIVE:
            yield F.coalesce(F.col(name), error).alias(name)
        else:
            yield F.col(f"`{name}`")
    if mode is Mode.PERMISSIVE and CORRUPT_COLUMN not in names:
        yield error.alias(CORRUPT_COLUMN)


def _mode(name: str) -> Mode:
    try:
        return Mode[name.upper()]
    except KeyError:
        raise ValueError(f"mode is one of {', '.join(Mode.__members__)}, not {name}.") from None


def _schema_to_read(
    registry: Registry, subject: str | None, version: int | str, schema_id: int | None
) -> FetchedSchema:
    if (subject is None) == (schema_id is None):
        raise ValueError("Either subject or schema_id says which schema is read.")
    if subject is not None:
        return registry.version(subject, version)
    assert schema_id is not None
    return registry.schema(schema_id)


def _header_of(frame: DataFrame, column: str) -> str | None:
    if "headers" not in frame.columns:
        return None
    return KEY_HEADER if column == "key" else VALUE_HEADER


@dataclass
class _Decode:
    """
    What a worker does with a batch of rows.
    """

    address: RegistryAddress
    schema: FetchedSchema
    message: str | None
    arrow: pa.DataType
    mode: Mode
    header: str | None
    place: tuple[str, ...] = ()

    def function(self) -> Any:
        """
        The same as a function, which Spark wants.
        """
        decoder: list[ValueDecoder] = []

        def decode(*columns: pa.Array) -> pa.Array:
            if not decoder:
                decoder.append(ValueDecoder(self.address.kept(), self.schema, self.message))
            return self._batch(decoder[0], columns)

        return decode

    def _batch(self, decoder: ValueDecoder, columns: tuple[pa.Array, ...]) -> pa.Array:
        headers = schema_headers(columns[1], self.header) if self.header else None
        found = decoder.decode(columns[0], headers)
        if found.errors and self.mode is Mode.FAILFAST:
            raise MalformedValue(self._sentence(found, columns[len(columns) - len(self.place) :]))
        errors = [found.errors.get(row) for row in range(len(columns[0]))] if found.errors else None
        sentences = (
            pa.array(errors, pa.string()) if errors else pa.nulls(len(columns[0]), pa.string())
        )
        return pa.StructArray.from_arrays([found.column, sentences], [_DECODED, _ERROR])

    def _sentence(self, found: DecodedColumn, place: tuple[pa.Array, ...]) -> str:
        row = min(found.errors)
        where = ", ".join(
            f"{name} {values[row].as_py()}" for name, values in zip(self.place, place, strict=True)
        )
        return f"{where}: {found.errors[row]}" if where else found.errors[row]
