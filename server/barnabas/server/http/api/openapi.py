"""
The description of an API in OpenAPI 3.1, from its table.

The fields of a query come from the dataclass of the operation, the content of an answer from its
``TypedDict``. Nothing is declared here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from barnabas.server.http.fields import ObjectField, Range, parts_of
from barnabas.server.http.json_api import Operation

Json = dict[str, Any]

VERSION: Final = "3.1.0"
_IN_PATH: Final = re.compile(r"\{(\w+)\}")
_SIMPLE: Final[dict[Any, Json]] = {
    str: {"type": "string"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    dict: {"type": "object"},
    Any: {},
}


def description(operations: Iterable[Operation], *, prefix: str, version: str) -> Json:
    """
    The description of *operations*.

    Args:
        prefix: of all paths.
        version: of the API.
    """
    schemas = _Schemas()
    paths: dict[str, Json] = {}
    for operation in operations:
        described = _operation(operation, schemas)
        paths.setdefault(prefix + operation.path, {})[operation.method.lower()] = described
    return {
        "openapi": VERSION,
        "info": {
            "title": "Barnabas",
            "version": version,
            "description": "What a broker is doing, and what is in its logs. Nothing is changed.",
        },
        "paths": paths,
        "components": {
            "schemas": {**schemas.named, "Error": _ERROR},
            "responses": {
                "Error": {
                    "description": "The request is not served; a sentence says why.",
                    "content": _content({"$ref": "#/components/schemas/Error"}),
                }
            },
        },
    }


_ERROR: Final[Json] = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
}


def _content(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}


def _operation(operation: Operation, schemas: _Schemas) -> Json:
    names = _IN_PATH.findall(operation.path)
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in names
    ]
    in_query = [_parameter(name, part, schemas) for name, part in parts_of(operation.shape).items()]
    return {
        "operationId": operation.handle.__module__.rpartition(".")[2]
        + "_"
        + operation.handle.__name__,
        "summary": operation.says,
        "parameters": [*in_path, *in_query],
        "responses": {
            "200": {
                "description": operation.says,
                "content": _content(schemas.of(operation.answers)),
            },
            "default": {"$ref": "#/components/responses/Error"},
        },
    }


def _parameter(name: str, part: ObjectField, schemas: _Schemas) -> Json:
    schema = schemas.of(part.kind)
    if part.range is not None:
        schema = _bounded(schema, part.range)
    if part.default not in (None, ""):
        schema = {**schema, "default": part.default}
    found: Json = {"name": name, "in": "query", "required": part.is_required, "schema": schema}
    return {**found, "description": part.says} if part.says else found


def _bounded(schema: Json, allowed: Range) -> Json:
    most = {} if allowed.most is None else {"maximum": allowed.most}
    return {**schema, "minimum": allowed.least, **most}


class _Schemas:
    """
    The schemas of types; those of each ``TypedDict`` have its name.
    """

    def __init__(self) -> None:
        self.named: dict[str, Json] = {}

    def of(self, kind: Any) -> Json:
        """
        The schema of a type.
        """
        if kind in _SIMPLE:
            return _SIMPLE[kind]
        if is_typeddict(kind):
            return self._ref(kind)
        return _OF_ORIGIN[get_origin(kind)](self, get_args(kind))

    def annotated(self, arguments: Sequence[Any]) -> Json:
        says = next((each for each in arguments[1:] if isinstance(each, str)), "")
        return {**self.of(arguments[0]), "description": says}

    def one_of(self, kinds: Iterable[Any]) -> Json:
        schemas = [self.of(kind) for kind in kinds]
        if all(schema.keys() <= {"type", "format"} for schema in schemas):
            merged: Json = {}
            for schema in schemas:
                merged |= schema
            return {**merged, "type": [schema["type"] for schema in schemas]}
        return {"anyOf": schemas}

    def _ref(self, kind: Any) -> Json:
        name = kind.__name__.removesuffix("View")
        if name not in self.named:
            self.named[name] = {}  # it may refer to itself
            hints = get_type_hints(kind, include_extras=True)
            self.named[name] = {
                "type": "object",
                "description": " ".join((kind.__doc__ or "").split()),
                "properties": {field: self.of(hint) for field, hint in hints.items()},
                "required": sorted(kind.__required_keys__),
            }
        return {"$ref": f"#/components/schemas/{name}"}


_OF_ORIGIN: Final[Mapping[Any, Callable[[_Schemas, Sequence[Any]], Json]]] = {
    Annotated: _Schemas.annotated,
    Literal: lambda _, values: {"type": "string", "enum": list(values)},
    Union: _Schemas.one_of,
    UnionType: _Schemas.one_of,
    list: lambda schemas, kinds: {"type": "array", "items": schemas.of(kinds[0])},
    dict: lambda schemas, kinds: {"type": "object", "additionalProperties": schemas.of(kinds[1])},
}
