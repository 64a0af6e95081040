"""
Which event loop the tests of the server run on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

LoopFactories = Mapping[str, Callable[[], asyncio.AbstractEventLoop]]

UVLOOP: LoopFactories = {"uvloop": uvloop.new_event_loop}
BOTH: LoopFactories = {**UVLOOP, "asyncio": asyncio.new_event_loop}

# What talks to transports directly has to work on both loops: uvloop is not there on every system.
ON_BOTH = {"test_connection.py"}


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> LoopFactories:
    return BOTH if item.path.name in ON_BOTH else UVLOOP
