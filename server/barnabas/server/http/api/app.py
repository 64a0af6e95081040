"""
The API: all its operations, and the bounds of its answers.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from barnabas.server.http.api import (
    PREFIX,
    cluster,
    explaining,
    groups,
    records,
    segments,
    timeline,
    topics,
    transactions,
)
from barnabas.server.http.api.context import refusal
from barnabas.server.http.api.openapi import description
from barnabas.server.http.json_api import Answer, Limits, Nothing, Operation, make_app

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from barnabas.server.http.api.context import ApiContext

LIMITS: Final = Limits(most_bytes=16 << 20, most_at_once=8, most_waiting=16)


def describe(_: ApiContext, __: Nothing) -> Answer:
    return Answer(description(OPERATIONS, prefix=PREFIX, version=version("barnabas")))


OPERATIONS: Final[tuple[Operation, ...]] = (
    *cluster.OPERATIONS,
    *topics.OPERATIONS,
    *timeline.OPERATIONS,
    *explaining.OPERATIONS,
    *segments.OPERATIONS,
    *records.OPERATIONS,
    *groups.OPERATIONS,
    *transactions.OPERATIONS,
    Operation(
        "GET",
        "/openapi.json",
        "the description of all this in OpenAPI 3.1",
        describe,
        answers=dict[str, Any],
    ),
)


def make_api(api: ApiContext) -> Starlette:
    """
    The application of the API.
    """
    return make_app(OPERATIONS, api, executor=api.executor, refusal=refusal, limits=LIMITS)
