"""
JSON with a JSON Schema, as rows.

Neither Spark nor Arrow has columns for a JSON Schema, so the mapping is one of its own: objects
with ``properties`` are structs, other objects whose values have one type are maps, and what can be
of several types stays JSON, as a string. A value is not validated beyond the types of its columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

from barnabas.pipeline.values.errors import MalformedValues, UnusableSchema
from barnabas.pipeline.values.registry import FetchedSchema
from barnabas.pipeline.values.rows import ReadColumn, one_by_one

Convert = Callable[[Any], Any]

_SIMPLE: Final = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
}

_MOST_REFERENCES: Final = 100
"""From one schema to the next, before there is a type."""


class _Document:
    """
    A JSON Schema with those that it refers to.
    """

    def __init__(self, schema: FetchedSchema) -> None:
        self._others = {name: _loaded(text) for name, text in schema.references}
        self._root = _loaded(schema.text)

    def _found(self, reference: str, root: Any) -> tuple[Any, Any]:
        """
        Return the schema that *reference* names, and the document that it is in.
        """
        document, _, path = reference.partition("#")
        there = root if not document else self._others.get(document)
        if there is None:
            raise UnusableSchema(
                f"The schema refers to {document}, which the registry did not give."
            )
        found = there
        for part in path.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or key not in found:
                raise UnusableSchema(f"The schema refers to {reference}, which is not there.")
            found = found[key]
        return found, there

    def _without_null(self, schema: Mapping[str, Any]) -> Any:
        """
        The one type beside null, by name or as a schema; None if there are several.
        """
        for word in ("oneOf", "anyOf"):
            others = [one for one in schema.get(word, ()) if one != {"type": "null"}]
            if word in schema:
                return others[0] if len(others) == 1 and isinstance(others[0], Mapping) else None
        kinds = schema.get("type", "object" if "properties" in schema else None)
        if isinstance(kinds, list):
            kinds = [kind for kind in kinds if kind != "null"]
            return kinds[0] if len(kinds) == 1 else None
        return kinds


class JsonType(_Document):
    """
    The columns of a JSON Schema, and how a value becomes a row of them.
    """

    def __init__(self, schema: FetchedSchema) -> None:
        """
        Raises:
            UnusableSchema: it is none, refers to what is not there, or contains itself.
        """
        super().__init__(schema)
        self.arrow, self._convert = self._type(self._root, self._root, ())

    def reader(self) -> ReadColumn:
        """
        What reads values. By which schema they were written makes no difference.
        """
        convert = self._convert

        def decode(value: bytes) -> Any:
            try:
                found = json.loads(value)
            except (ValueError, RecursionError):
                raise MalformedValues("It is no JSON.") from None
            try:
                return found if convert is None else convert(found)
            except (TypeError, AttributeError, ValueError) as error:
                raise MalformedValues(f"It does not fit its schema: {error}") from None

        return one_by_one(decode, self.arrow)

    def _type(
        self, schema: Any, root: Any, inside: tuple[str, ...]
    ) -> tuple[pa.DataType, Convert | None]:
        if not isinstance(schema, Mapping):
            return pa.string(), _as_json
        if "$ref" in schema:
            return self._referred(schema["$ref"], root, inside)
        kinds = self._without_null(schema)
        if isinstance(kinds, Mapping):
            return self._type(kinds, root, inside)
        if kinds in ("object", "array"):
            return (self._object if kinds == "object" else self._array)(schema, root, inside)
        return (_SIMPLE[kinds], _exact(kinds)) if kinds in _SIMPLE else (pa.string(), _as_json)

    def _referred(
        self, reference: str, root: Any, inside: tuple[str, ...]
    ) -> tuple[pa.DataType, Convert | None]:
        found, there = self._found(reference, root)
        place = f"{id(there)}#{reference.partition('#')[2]}"
        if place in inside:
            raise UnusableSchema(f"{reference} contains itself, and a column cannot.")
        return self._type(found, there, (*inside, place))

    def _object(
        self, schema: Mapping[str, Any], root: Any, inside: tuple[str, ...]
    ) -> tuple[pa.DataType, Convert | None]:
        properties = schema.get("properties")
        if properties:
            fields = {name: self._type(of, root, inside) for name, of in properties.items()}
            kind = pa.struct([(name, of) for name, (of, _) in fields.items()])
            return kind, _of_object({name: convert for name, (_, convert) in fields.items()})
        values = schema.get("additionalProperties")
        if isinstance(values, Mapping):
            of, convert = self._type(values, root, inside)
            return pa.map_(pa.string(), of), _of_map(convert)
        return pa.string(), _as_json

    def _array(
        self, schema: Mapping[str, Any], root: Any, inside: tuple[str, ...]
    ) -> tuple[pa.DataType, Convert | None]:
        of, convert = self._type(schema.get("items"), root, inside)
        return pa.list_(of), _of_array(convert)


class JsonWriter(_Document):
    """
    How rows of a column become values of a JSON Schema.
    """

    def converter(self, kind: pa.DataType) -> Convert:
        """
        Return a function that makes of a row what ``json.dumps`` writes: a map is an object, and a
        field that is null is left out unless the schema requires it. It raises ``ValueError`` if
        such a field must not be null.
        """
        return self._converter(kind, self._root, self._root)

    def _converter(self, kind: pa.DataType, schema: Any, root: Any) -> Convert:
        schema, root = self._plain(schema, root)
        if pa.types.is_struct(kind):
            return self._of_struct(kind, schema, root)
        if pa.types.is_map(kind):
            value = self._converter(kind.item_type, schema.get("additionalProperties"), root)
            return lambda row: None if row is None else {name: value(item) for name, item in row}
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            item = self._converter(kind.value_type, schema.get("items"), root)
            return lambda row: None if row is None else [item(each) for each in row]
        return lambda value: value

    def _of_struct(self, kind: pa.StructType, schema: Mapping[str, Any], root: Any) -> Convert:
        properties, required = schema.get("properties", {}), schema.get("required", ())
        converts = {
            field.name: self._converter(field.type, properties.get(field.name), root)
            for field in kind
        }
        needed = {name: self._may_be_null(properties.get(name), root) for name in required}

        def convert(row: Any) -> Any:
            if row is None:
                return None
            made = {
                name: convert_field(row[name])
                for name, convert_field in converts.items()
                if row[name] is not None
            }
            for name, may_be_null in needed.items():
                if name not in made:
                    if not may_be_null:
                        raise ValueError(f"{name} is required, and null")
                    made[name] = None
            return made

        return convert

    def _plain(self, schema: Any, root: Any) -> tuple[Mapping[str, Any], Any]:
        """
        Follow references and leave out null, as far as one type is left.
        """
        for _ in range(_MOST_REFERENCES):
            if not isinstance(schema, Mapping):
                return {}, root
            if "$ref" in schema:
                schema, root = self._found(schema["$ref"], root)
                continue
            inner = self._without_null(schema)
            if not isinstance(inner, Mapping):
                return schema, root
            schema = inner
        raise UnusableSchema("The schema refers to itself.")

    def _may_be_null(self, schema: Any, root: Any) -> bool:
        if not isinstance(schema, Mapping):
            return True
        if "$ref" in schema:
            return self._may_be_null(*self._found(schema["$ref"], root))
        for word in ("oneOf", "anyOf"):
            if word in schema:
                return any(self._may_be_null(one, root) for one in schema[word])
        kinds = schema.get("type", "null")
        return "null" in kinds if isinstance(kinds, list) else bool(kinds == "null")


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise UnusableSchema("The schema is no JSON.") from None


def _as_json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


def _exact(kind: str) -> Convert | None:
    return {"integer": _integer, "number": _number}.get(kind)


def _integer(value: Any) -> Any:
    if isinstance(value, float):
        # 5.0 is an integer in JSON Schema.
        if not value.is_integer():
            raise TypeError(f"{value} is no integer")
        return int(value)
    return value


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise TypeError("true and false are no numbers")
    return value if value is None else float(value)


def _of_object(converts: Mapping[str, Convert | None]) -> Convert:
    needed = {name: convert for name, convert in converts.items() if convert is not None}

    def convert_object(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise TypeError(f"{type(value).__name__} is no object")
        for name, convert in needed.items():
            if name in value:
                value[name] = convert(value[name])
        return value

    return convert_object


def _of_map(convert: Convert | None) -> Convert:
    def convert_map(value: Any) -> Any:
        if value is None:
            return None
        if convert is None:
            return list(value.items())
        return [(name, convert(item)) for name, item in value.items()]

    return convert_map


def _of_array(convert: Convert | None) -> Convert:
    def convert_array(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, list):
            raise TypeError(f"{type(value).__name__} is no array")
        return value if convert is None else [convert(item) for item in value]

    return convert_array
