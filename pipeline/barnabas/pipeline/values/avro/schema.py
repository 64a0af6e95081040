"""
Schemas of Avro without names: each type stands where it is used.

What a type becomes in Arrow follows ``SchemaConverters`` of Apache Spark's Avro package.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from barnabas.pipeline.schemas import TIMESTAMP
from barnabas.pipeline.values.errors import UnusableSchema

PRIMITIVES: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Final = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): TIMESTAMP,
    ("long", "timestamp-micros"): TIMESTAMP,
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
MOST_DIGITS: Final = 38
"""Spark's decimals have no more."""
_WIDENED: Final = ({"int", "long"}, {"float", "double"})

NO_DEFAULT: Final = object()


@dataclass(frozen=True, slots=True)
class AvroField:
    """
    A field of a record.
    """

    name: str
    aliases: tuple[str, ...]
    type: AvroType
    default: Any


@dataclass(frozen=True, slots=True)
class AvroType:
    """
    A type with all that is in it.
    """

    kind: str
    """That of Avro, or ``union``."""
    arrow: pa.DataType
    logical: str = ""
    """The logical type, where it makes a difference."""
    names: frozenset[str] = frozenset()
    """Of a record, an enum or a fixed: its name and aliases, without namespaces."""
    name: str = ""
    size: int = 0
    symbols: tuple[str, ...] = ()
    default: str | None = None
    """The symbol of an enum that stands for unknown ones."""
    fields: tuple[AvroField, ...] = ()
    items: AvroType | None = None
    """Of an array or the values of a map."""
    branches: tuple[AvroType, ...] = ()

    @property
    def members(self) -> tuple[AvroType, ...]:
        """
        The branches of a union that are not null.
        """
        return tuple(branch for branch in self.branches if branch.kind != "null")

    @property
    def is_struct_of_members(self) -> bool:
        """
        Whether it is a union that becomes ``struct<member0, member1, ...>``.
        """
        kinds = [member.kind for member in self.members]
        return len(kinds) > 1 and not (len(kinds) == 2 and set(kinds) in _WIDENED)


def parse(text: str, references: Sequence[tuple[str, str]] = ()) -> AvroType:
    """
    The type of a schema; *references* define names that it uses.

    Raises:
        UnusableSchema: it is none, a name is not defined, or a type contains itself.
    """
    parser = _Parser()
    for _, other in references:
        parser.parse(_loaded(other), "")
    return parser.parse(_loaded(text), "")


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        # The registry has the text of a lone type also without quotes.
        return text


class _Parser:
    def __init__(self) -> None:
        self._named: dict[str, AvroType | None] = {}

    def parse(self, schema: Any, namespace: str) -> AvroType:
        if isinstance(schema, str):
            return self._by_name(schema, namespace)
        if isinstance(schema, list):
            return _union(tuple(self.parse(branch, namespace) for branch in schema))
        if not isinstance(schema, Mapping) or "type" not in schema:
            raise UnusableSchema(f"{schema!r} is no type of Avro.")
        kind = schema["type"]
        if kind in ("record", "error", "enum", "fixed"):
            return self._define(schema, namespace)
        if kind in ("array", "map"):
            items = self.parse(schema["items" if kind == "array" else "values"], namespace)
            arrow = pa.list_(items.arrow) if kind == "array" else pa.map_(pa.string(), items.arrow)
            return AvroType(kind, arrow, items=items)
        if isinstance(kind, str) and kind in PRIMITIVES:
            return _logical(schema, AvroType(kind, PRIMITIVES[kind]))
        return self.parse(kind, namespace)

    def _by_name(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name, PRIMITIVES[name])
        for full_name in (_full(name, namespace), name):
            if full_name in self._named:
                found = self._named[full_name]
                if found is None:
                    raise UnusableSchema(
                        f"{full_name} contains itself, and a column cannot. Decode it with a "
                        "reader schema that leaves this field out."
                    )
                return found
        raise UnusableSchema(f"The schema uses {name}, which is not defined in it.")

    def _define(self, schema: Mapping[str, Any], namespace: str) -> AvroType:
        full_name = _full(schema["name"], schema.get("namespace", namespace))
        inner_namespace = full_name.rpartition(".")[0]
        self._named[full_name] = None
        made = self._made(schema, inner_namespace)
        names = (full_name, *schema.get("aliases", ()))
        short_names = frozenset(name.rpartition(".")[2] for name in names)
        made = replace(made, name=full_name, names=short_names)
        self._named[full_name] = made
        return made

    def _made(self, schema: Mapping[str, Any], namespace: str) -> AvroType:
        if schema["type"] == "enum":
            symbols = tuple(schema["symbols"])
            return AvroType("enum", pa.string(), symbols=symbols, default=schema.get("default"))
        if schema["type"] == "fixed":
            fixed = AvroType("fixed", pa.binary(), size=schema["size"])
            return _logical(schema, fixed)
        fields = tuple(
            AvroField(
                field["name"],
                tuple(field.get("aliases", ())),
                self.parse(field["type"], namespace),
                field.get("default", NO_DEFAULT),
            )
            for field in schema["fields"]
        )
        arrow = pa.struct([(field.name, field.type.arrow) for field in fields])
        return AvroType("record", arrow, fields=fields)


def _full(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _logical(schema: Mapping[str, Any], plain: AvroType) -> AvroType:
    logical = str(schema.get("logicalType"))
    if (plain.kind, logical) in _LOGICAL:
        return replace(plain, arrow=_LOGICAL[plain.kind, logical], logical=logical)
    if logical == "decimal" and plain.kind in ("bytes", "fixed"):
        precision, scale = schema["precision"], schema.get("scale", 0)
        if precision > MOST_DIGITS:
            raise UnusableSchema(f"Spark has no decimals of {precision} digits.")
        return replace(plain, arrow=pa.decimal128(precision, scale), logical="decimal")
    return plain


def _union(branches: tuple[AvroType, ...]) -> AvroType:
    union = AvroType("union", pa.null(), branches=branches)
    members = union.members
    if union.is_struct_of_members:
        # Spark counts members without the null.
        arrow = pa.struct([(f"member{n}", member.arrow) for n, member in enumerate(members)])
    elif len(members) == 2:
        arrow = pa.int64() if {"int", "long"} == {m.kind for m in members} else pa.float64()
    else:
        arrow = members[0].arrow if members else pa.null()
    return replace(union, arrow=arrow)
