"""
A client of a broker's JSON API, which holds each answer against the description of the API.
"""

from __future__ import annotations

from functools import cache
from typing import Any
from urllib.parse import urlencode

from jsonschema import Draft202012Validator

from barnabas.server.http.api import PREFIX
from barnabas.server.http.api.app import OPERATIONS
from barnabas.server.http.api.openapi import description
from tests.support.http_client import Answer, get
from tests.support.server import TestBroker

HTTP = {"barnabas_http_listener": "0"}


@cache
def described() -> dict[str, Any]:
    return description(OPERATIONS, prefix=PREFIX, version="0")


@cache
def _validator(path: str) -> Draft202012Validator:
    answer = described()["paths"][path]["get"]["responses"]["200"]
    schema = answer["content"]["application/json"]["schema"]
    return Draft202012Validator({**schema, "components": _strict(described()["components"])})


def _strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _strict(each) for name, each in schema.items()}
    return {**found, "additionalProperties": False} if "properties" in found else found


def _template(path: str) -> str:
    parts = path.split("/")
    for template in described()["paths"]:
        names = template.split("/")
        if len(names) == len(parts) and all(
            name == part or name.startswith("{") for name, part in zip(names, parts, strict=True)
        ):
            return str(template)
    raise AssertionError(f"{path} is not described")


async def request(broker: TestBroker, path: str, *query: tuple[str, object]) -> Answer:
    encoded = urlencode([(name, _text(value)) for name, value in query])
    return await get(broker.http_port, f"{PREFIX}{path}?{encoded}".rstrip("?"))


async def ask(broker: TestBroker, path: str, **query: object) -> Any:
    """
    The response to a successful request. A list stands for a repeated parameter.
    """
    pairs = [
        (name, each)
        for name, value in query.items()
        for each in (value if isinstance(value, list) else [value])
    ]
    answer = await request(broker, path, *pairs)
    assert 200 == answer.status, answer.text
    _validator(_template(PREFIX + path)).validate(answer.json)
    return answer.json


async def refused(broker: TestBroker, path: str, **query: object) -> tuple[int, str]:
    answer = await request(broker, path, *query.items())
    assert answer.status >= 400, answer.text
    assert ["error"] == list(answer.json)
    return answer.status, answer.json["error"]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
