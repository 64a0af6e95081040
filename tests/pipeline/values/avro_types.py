"""
Random schemas of Avro, values of them, and schemas that can read them.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from hypothesis import strategies as st

PRIMITIVES = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=20),
    "string": st.text(max_size=20),
}
WIDER = {
    "int": ["int", "long", "double"],
    "float": ["float", "double"],
    "string": ["string", "bytes"],
}
"""What a reader may have instead. All are exact, unlike a long as a float."""
DEFAULTS = {"boolean": True, "int": 7, "long": -1, "double": 0.5, "string": "none"}


def record(name: str = "R", /, **fields: Any) -> dict[str, Any]:
    """
    The schema of a record; a field with a default is a pair of its type and the default.
    """
    return {
        "type": "record",
        "name": name,
        "fields": [
            {"name": field, "type": of[0], "default": of[1]}
            if isinstance(of, tuple)
            else {"name": field, "type": of}
            for field, of in fields.items()
        ],
    }


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def logical(kind: str, of: str = "long", /, **more: Any) -> dict[str, Any]:
    return {"type": of, "logicalType": kind, **more}


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> Any:  # noqa: PLR0911  # a case each
    """
    A type; records have up to four fields.
    """
    kinds = [*PRIMITIVES, "enum", "fixed"]
    if depth:
        kinds += ["array", "map", "record", "nullable"]
    kind = draw(st.sampled_from(kinds))
    match kind:
        case "enum":
            return {"type": "enum", "name": _name(draw), "symbols": ["A", "B", "C"]}
        case "fixed":
            return {"type": "fixed", "name": _name(draw), "size": draw(st.integers(1, 20))}
        case "array":
            return {"type": "array", "items": draw(schemas(depth - 1))}
        case "map":
            return {"type": "map", "values": draw(schemas(depth - 1))}
        case "nullable":
            inner = draw(
                schemas(depth - 1).filter(lambda of: of != "null" and not isinstance(of, list))
            )
            return draw(st.permutations(["null", inner]))
        case "record":
            return draw(records(depth - 1))
    return kind


@st.composite
def records(draw: st.DrawFn, depth: int = 2) -> Any:
    fields = draw(st.lists(schemas(depth), min_size=1, max_size=4))
    return {
        "type": "record",
        "name": _name(draw),
        "fields": [{"name": f"f{n}", "type": of} for n, of in enumerate(fields)],
    }


_numbers = count()


def _name(draw: st.DrawFn) -> str:
    return f"space.N{next(_numbers)}"


def values(of: Any) -> st.SearchStrategy[Any]:  # noqa: PLR0911  # a case each
    if isinstance(of, list):
        return st.one_of(*(values(branch) for branch in of))
    if isinstance(of, str):
        return PRIMITIVES[of]
    match of["type"]:
        case "enum":
            return st.sampled_from(of["symbols"])
        case "fixed":
            return st.binary(min_size=of["size"], max_size=of["size"])
        case "array":
            return st.lists(values(of["items"]), max_size=4)
        case "map":
            return st.dictionaries(st.text(max_size=4), values(of["values"]), max_size=4)
    return st.fixed_dictionaries({field["name"]: values(field["type"]) for field in of["fields"]})


@st.composite
def readers(draw: st.DrawFn, of: Any) -> Any:
    """
    A reader's type that can read values of *of*: fields are missing, added and reordered, numbers
    are wider, and types become nullable.
    """
    if isinstance(of, str):
        wider = draw(st.sampled_from(WIDER.get(of, [of])))
        return draw(st.sampled_from([wider, ["null", wider]])) if of != "null" else of
    if isinstance(of, list):
        return [one if one == "null" else _plain(draw(readers(one))) for one in of]
    match of["type"]:
        case "array":
            return {"type": "array", "items": draw(readers(of["items"]))}
        case "map":
            return {"type": "map", "values": draw(readers(of["values"]))}
        case "record":
            kept = [field for field in of["fields"] if draw(st.integers(0, 3))]
            fields = [{**field, "type": draw(readers(field["type"]))} for field in kept]
            for number, kind in enumerate(draw(st.lists(st.sampled_from([*DEFAULTS]), max_size=2))):
                default = DEFAULTS[kind]
                fields.append({"name": f"new{number}", "type": kind, "default": default})
            fields.append({"name": "last", "type": ["null", "long"], "default": None})
            return {**of, "fields": draw(st.permutations(fields))}
    return of


def _plain(of: Any) -> Any:
    return of[1] if isinstance(of, list) else of
