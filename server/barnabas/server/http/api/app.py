"""
The API: all its operations, and the bounds of its answers.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from barnabas.server.http.api import cluster, explaining, timeline, topics
from barnabas.server.http.api.context import refusal
from barnabas.server.http.json_api import Limits, Operation, make_app

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from barnabas.server.http.api.context import Api

PREFIX: Final = "/api/v1"
LIMITS: Final = Limits(most_bytes=16 << 20, most_at_once=8, most_waiting=16)
OPERATIONS: Final[tuple[Operation, ...]] = (
    *chain(cluster.OPERATIONS, topics.OPERATIONS, timeline.OPERATIONS, explaining.OPERATIONS),
)


def make_api(api: Api) -> Starlette:
    """
    The application of the API.
    """
    return make_app(OPERATIONS, api, executor=api.executor, refusal=refusal, limits=LIMITS)
