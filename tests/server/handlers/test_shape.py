"""
The one shape of all request handlers.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import pytest

from barnabas.server import handlers
from barnabas.server.requests.registry import HANDLERS, Registration

PLAIN: Final = {"Produce"}
"""
The APIs whose handlers are plain functions, which may return a coroutine: the fastest ones.
"""
FOLDER: Final = Path(handlers.__path__[0])


def handler_of(registration: Registration) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """
    The definition of a handler in its source, which compiled functions do not show.
    """
    name = registration.request.__name__
    found = [
        definition
        for path in FOLDER.glob("*.py")
        for definition in ast.parse(path.read_text()).body
        if isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
        for decorator in definition.decorator_list
        if ast.unparse(decorator).startswith(f"handles({name},")
    ]
    assert 1 == len(found), name
    return found[0]


@pytest.mark.parametrize("key", sorted(HANDLERS))
def test_handler_is_a_coroutine_function_from_request_and_context_to_response(key: int) -> None:
    registration = HANDLERS[key]
    handler = handler_of(registration)
    response = registration.response.__name__
    is_plain = registration.name in PLAIN

    assert is_plain != isinstance(handler, ast.AsyncFunctionDef)
    assert f"request: {registration.request.__name__}, context: RequestContext" == ast.unparse(
        handler.args
    )
    assert handler.returns is not None
    assert is_plain or response == ast.unparse(handler.returns)
