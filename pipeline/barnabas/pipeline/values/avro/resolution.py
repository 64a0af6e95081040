"""
Values of one schema are read as those of another: the schema resolution of Avro's specification.

A reader is made once for each pair of schemas. Where they do not fit at all, that is an error of
``reader_of``; a branch of a union that does not fit is one of the values that have it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from barnabas.pipeline.decoding.varint_columns import Ints
from barnabas.pipeline.values.avro.defaults import default_column
from barnabas.pipeline.values.avro.places import ValuePlaces, binary, decimals
from barnabas.pipeline.values.avro.reading import (
    PRIMITIVES,
    Read,
    merged,
    offsets_of,
    read_items,
    read_string,
)
from barnabas.pipeline.values.avro.schema import NO_DEFAULT, AvroField, AvroType
from barnabas.pipeline.values.errors import MalformedValues, UnusableSchema

_PROMOTED: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
}
_US_PER_MS: Final = 1000
_NAMED: Final = ("record", "enum", "fixed")


def reader_of(writer: AvroType, reader: AvroType) -> Read:
    """
    What reads values of *writer* as a column of the type of *reader*.

    Raises:
        UnusableSchema: no value of the one can be one of the other.
    """
    if writer.kind == "union":
        return _from_union(writer, reader)
    if reader.kind == "union":
        return _to_union(writer, reader)
    if not _fits(writer, reader):
        raise UnusableSchema(
            f"{_described(writer)} was written, and {_described(reader)} cannot be read from it."
        )
    if writer.kind in ("array", "map"):
        return _list_or_map(writer, reader)
    if writer.kind == "record":
        return _record(writer, reader)
    if writer.kind == "enum":
        return _enum(writer, reader)
    return _simple(writer, reader)


def _described(of: AvroType) -> str:
    return f"the {of.kind} {of.name}" if of.name else f"a value of type {of.kind}"


def _fits(writer: AvroType, reader: AvroType) -> bool:
    if writer.kind != reader.kind:
        return reader.kind in _PROMOTED.get(writer.kind, ()) or {writer.kind, reader.kind} == {
            "bytes",
            "string",
        }
    if writer.kind not in _NAMED:
        return True
    short_name = writer.name.rpartition(".")[2]
    return short_name in reader.names and writer.size == reader.size


def _from_union(writer: AvroType, reader: AvroType) -> Read:
    readers: list[Read | UnusableSchema] = []
    for branch in writer.branches:
        try:
            readers.append(
                _null_of(reader) if _is_lone_null(branch, reader) else reader_of(branch, reader)
            )
        except UnusableSchema as error:
            readers.append(error)
    if not any(callable(read) for read in readers):
        raise UnusableSchema(f"{_described(reader)} cannot be read from any type of a union.")

    def read(places: ValuePlaces) -> pa.Array:
        chosen = places.numbers()
        places.check()
        parts: list[tuple[Ints, pa.Array]] = []
        for number in np.unique(chosen).tolist():
            if not 0 <= number < len(readers):
                raise MalformedValues(f"A union of {len(readers)} types has no type {number}.")
            read_branch = readers[number]
            if not callable(read_branch):
                raise MalformedValues(str(read_branch))
            rows = np.flatnonzero(chosen == number)
            some = places.take(rows)
            parts.append((rows, read_branch(some)))
            places.put(rows, some)
        return merged(len(places), parts, reader.arrow)

    return read


def _is_lone_null(writer: AvroType, reader: AvroType) -> bool:
    return writer.kind == "null" and (reader.kind == "null" or reader.members != reader.branches)


def _null_of(reader: AvroType) -> Read:
    return lambda places: pa.nulls(len(places), reader.arrow)


def _to_union(writer: AvroType, reader: AvroType) -> Read:
    if _is_lone_null(writer, reader):
        return _null_of(reader)
    members = reader.members
    same = [n for n, member in enumerate(members) if member.kind == writer.kind]
    for number in [*same, *range(len(members))]:
        try:
            read_member = reader_of(writer, members[number])
        except UnusableSchema:
            continue
        if reader.is_struct_of_members:
            return _as_member(read_member, number, reader.arrow)
        return _as_type(read_member, reader.arrow)
    raise UnusableSchema(f"A union that is read has no place for {_described(writer)}.")


def _as_type(read_member: Read, kind: pa.DataType) -> Read:
    def read(places: ValuePlaces) -> pa.Array:
        found = read_member(places)
        # pyarrow 26 cuts the items of a list of nulls when it casts the list to its own type.
        return found if found.type == kind else found.cast(kind)

    return read


def _as_member(read_member: Read, number: int, kind: pa.StructType) -> Read:
    def read(places: ValuePlaces) -> pa.Array:
        found = read_member(places)
        columns = [
            found if n == number else pa.nulls(len(places), field.type)
            for n, field in enumerate(kind)
        ]
        return pa.StructArray.from_arrays(columns, fields=list(kind))

    return read


def _list_or_map(writer: AvroType, reader: AvroType) -> Read:
    assert writer.items is not None
    assert reader.items is not None
    read_item = reader_of(writer.items, reader.items)
    if reader.kind == "map":
        entry = pa.struct([reader.arrow.key_field, reader.arrow.item_field])
        read_item = _entry(read_item, entry)

    def read(places: ValuePlaces) -> pa.Array:
        counts, items = read_items(places, read_item)
        if items is None:
            empty = entry if reader.kind == "map" else reader.arrow.value_type
            items = pa.array([], empty)
        if reader.kind == "map":
            keys, values = items.flatten()
            return pa.MapArray.from_arrays(offsets_of(counts), keys, values, type=reader.arrow)
        return pa.ListArray.from_arrays(offsets_of(counts), items, type=reader.arrow)

    return read


def _entry(read_value: Read, kind: pa.StructType) -> Read:
    def read(places: ValuePlaces) -> pa.Array:
        keys = read_string(places)
        places.check()
        return pa.StructArray.from_arrays([keys, read_value(places)], fields=list(kind))

    return read


def _record(writer: AvroType, reader: AvroType) -> Read:
    taken = {name: field for field in reader.fields if (name := _written_name(field, writer))}
    steps: list[tuple[str | None, Read]] = []
    for field in writer.fields:
        wanted = taken.get(field.name)
        if wanted is None:
            # What is not wanted is read as it was written, to know where it ends.
            steps.append((None, reader_of(field.type, field.type)))
        else:
            steps.append((wanted.name, reader_of(field.type, wanted.type)))
    read_names = {name for name, _ in steps}
    added = {f.name: _default(f, reader) for f in reader.fields if f.name not in read_names}

    def read(places: ValuePlaces) -> pa.Array:
        columns: dict[str | None, pa.Array] = {}
        for name, read_field in steps:
            columns[name] = read_field(places)
        for name, value in added.items():
            columns[name] = value.take(pa.array(np.zeros(len(places), np.int64)))
        places.check()
        if not reader.fields:
            return pa.array([{}] * len(places), reader.arrow)
        arrays = [columns[field.name] for field in reader.fields]
        return pa.StructArray.from_arrays(arrays, fields=list(reader.arrow))

    return read


def _written_name(field: AvroField, writer: AvroType) -> str | None:
    written = {other.name for other in writer.fields}
    return next((name for name in (field.name, *field.aliases) if name in written), None)


def _default(field: AvroField, reader: AvroType) -> pa.Array:
    if field.default is NO_DEFAULT:
        raise UnusableSchema(
            f"The field {field.name} of {reader.name} was not written, and has no default."
        )
    return default_column(field.type, field.default)


def _enum(writer: AvroType, reader: AvroType) -> Read:
    symbols = [s if s in reader.symbols else reader.default for s in writer.symbols]
    dictionary = pa.array(symbols, pa.string())

    def read(places: ValuePlaces) -> pa.Array:
        numbers = places.numbers()
        if np.any((numbers < 0) | (numbers >= len(symbols))):
            raise MalformedValues(f"The enum {writer.name} has no such symbol.")
        found = dictionary.take(pa.array(numbers))
        if found.null_count:
            raise MalformedValues(f"The enum {reader.name} that is read has not all symbols.")
        return found

    return read


def _simple(writer: AvroType, reader: AvroType) -> Read:
    same_kind = writer.kind == reader.kind
    if same_kind and reader.logical == "decimal":
        return _decimal(writer, reader)
    if same_kind and writer.kind == "fixed":
        size = writer.size
        return lambda places: binary(places, np.full(len(places), size, np.int64))
    if reader.kind in ("bytes", "string"):
        return PRIMITIVES[reader.kind]
    return _number(writer, reader)


def _number(writer: AvroType, reader: AvroType) -> Read:
    read_written = PRIMITIVES[writer.kind]
    if pa.types.is_timestamp(reader.arrow):
        return _timestamp(read_written, writer.logical or reader.logical, reader.arrow)
    if reader.logical == "date":
        return lambda places: read_written(places).view(pa.date32())
    if writer.kind == reader.kind:
        return read_written
    return lambda places: pa.array(
        read_written(places).to_numpy().astype(reader.arrow.to_pandas_dtype()), reader.arrow
    )


def _timestamp(read_written: Read, logical: str, kind: pa.DataType) -> Read:
    factor = _US_PER_MS if logical.endswith("-millis") else 1

    def read(places: ValuePlaces) -> pa.Array:
        numbers = read_written(places).to_numpy(zero_copy_only=False).astype(np.int64)
        most = np.iinfo(np.int64).max // factor
        if np.any((numbers > most) | (numbers < -most)):
            raise MalformedValues("A timestamp is too far away to be counted in microseconds.")
        return pa.array(numbers * factor).view(kind)

    return read


def _decimal(writer: AvroType, reader: AvroType) -> Read:
    kind = reader.arrow
    if writer.logical == "decimal" and writer.arrow.scale != kind.scale:
        raise UnusableSchema(
            f"A decimal has {writer.arrow.scale} decimal places, and {kind.scale} are read."
        )
    if writer.kind == "fixed":
        size = writer.size
        return lambda places: decimals(places, np.full(len(places), size, np.int64), kind)
    return lambda places: decimals(places, places.numbers(), kind)


def read_values(read: Read, data: Any, starts: Ints, ends: Ints) -> pa.Array:
    """
    A column of the values between *starts* and *ends*. Bytes behind a value are ignored, as
    confluent-kafka does.

    Raises:
        MalformedValues: some of them are none.
    """
    places = ValuePlaces(data, starts.copy(), ends)
    found = read(places)
    places.check()
    return found
