"""
A column of bytes becomes the column that one schema says, whichever schemas the values were written
with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from barnabas.pipeline.decoding.varint_columns import Ints
from barnabas.pipeline.values.avro.reading import merged
from barnabas.pipeline.values.avro.resolution import read_values, reader_of
from barnabas.pipeline.values.avro.schema import AvroType, parse
from barnabas.pipeline.values.errors import MalformedValues, UnusableSchema
from barnabas.pipeline.values.frames import Frame, Values, frames
from barnabas.pipeline.values.json_schema import JsonType
from barnabas.pipeline.values.registry import FetchedSchema, Registry, SchemaKey, UnknownSchema
from barnabas.pipeline.values.rows import ReadColumn


class DecodedColumn(NamedTuple):
    """
    A column, null where there was nothing or nothing that could be read.
    """

    column: pa.Array
    errors: dict[int, str]
    """By row, what is wrong with it."""


@dataclass
class ValueDecoder:
    """
    Reads values as those of one schema.

    Args:
        message: of Protobuf, the message that is read; by default the first one of the schema.

    Raises:
        UnusableSchema: no columns can be made of *schema*.
    """

    registry: Registry
    schema: FetchedSchema
    message: str | None = None
    _readers: dict[Frame, ReadColumn | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kinds: dict[str, Callable[[], tuple[pa.DataType, Callable[[Frame], ReadColumn]]]] = {
            "AVRO": self._avro,
            "JSON": self._json,
            "PROTOBUF": self._protobuf,
        }
        if self.schema.kind not in kinds:
            raise UnusableSchema(f"There is no decoder for schemas of type {self.schema.kind}.")
        self.arrow, self._made = kinds[self.schema.kind]()

    def decode(self, column: pa.Array, headers: list[bytes | None] | None = None) -> DecodedColumn:
        """
        Decode a column of bytes.

        Args:
            headers: of each row, the header that may name its schema.

        Raises:
            RegistryError: the registry does not answer. That it does not know a schema is an error
                of the rows that have it.
        """
        values = Values.of(column)
        parts: list[tuple[Ints, pa.Array]] = []
        errors: dict[int, str] = {}
        for frame, rows in frames(values, headers).items():
            read = frame if isinstance(frame, str) else self._reader(frame)
            if isinstance(read, str):
                errors.update(dict.fromkeys(rows.tolist(), read))
            else:
                assert isinstance(frame, Frame)
                self._read(values, rows, read, (frame.key, parts, errors))
        return DecodedColumn(merged(len(column), parts, self.arrow), errors)

    def _read(
        self,
        values: Values,
        rows: Ints,
        read: ReadColumn,
        into: tuple[SchemaKey, list[tuple[Ints, pa.Array]], dict[int, str]],
    ) -> None:
        key, parts, errors = into
        try:
            parts.append((rows, read(values.data, values.starts[rows], values.ends[rows])))
        except MalformedValues as error:
            if len(rows) == 1:
                errors[int(rows[0])] = f"Schema {key}: {error}"
                return
            # Somewhere in it: which row it is shows when it is alone.
            middle = len(rows) // 2
            self._read(values, rows[:middle], read, into)
            self._read(values, rows[middle:], read, into)

    def _reader(self, frame: Frame) -> ReadColumn | str:
        if frame not in self._readers:
            try:
                self._readers[frame] = self._made(frame)
            except UnknownSchema as error:
                self._readers[frame] = str(error)
            except (UnusableSchema, MalformedValues) as error:
                self._readers[frame] = f"Schema {frame.key}: {error}"
        return self._readers[frame]

    def _written(self, frame: Frame) -> FetchedSchema:
        written = self.registry.schema(frame.key)
        if written.kind != self.schema.kind:
            raise UnusableSchema(f"It is of type {written.kind}, and {self.schema.kind} is read.")
        return written

    def _avro(self) -> tuple[pa.DataType, Callable[[Frame], ReadColumn]]:
        reader = parse(self.schema.text, self.schema.references)

        def made(frame: Frame) -> ReadColumn:
            written = self._written(frame)
            return _avro_reader(parse(written.text, written.references), reader)

        return reader.arrow, made

    def _json(self) -> tuple[pa.DataType, Callable[[Frame], ReadColumn]]:
        reader = JsonType(self.schema)
        read = reader.reader()

        def made(frame: Frame) -> ReadColumn:
            self._written(frame)
            return read

        return reader.arrow, made

    def _protobuf(self) -> tuple[pa.DataType, Callable[[Frame], ReadColumn]]:
        # Only where it is needed: the package is not part of all that read Avro.
        from barnabas.pipeline.values import protobuf  # noqa: PLC0415

        file = protobuf.ProtobufFile(self.schema)
        message = file.named(self.message) if self.message else file.message([0])

        def made(frame: Frame) -> ReadColumn:
            written = protobuf.ProtobufFile(self._written(frame))
            return protobuf.protobuf_reader(written, message, frame.message)

        return protobuf.protobuf_type(message), made


def _avro_reader(writer: AvroType, reader: AvroType) -> ReadColumn:
    read = reader_of(writer, reader)

    def read_column(data: Any, starts: Ints, ends: Ints) -> pa.Array:
        return read_values(read, data, starts, ends)

    return read_column
