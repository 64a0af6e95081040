"""
The turns of a loop, in a process that has the objects of many tests.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager


@contextmanager
def objects_set_aside() -> Iterator[None]:
    """
    Freeze existing objects and disable automatic collection, as in a broker, which collects only
    when it is idle.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


@asynccontextmanager
async def turns() -> AsyncIterator[list[float]]:
    """
    The processor time of each turn of the loop, in seconds.
    """
    found: list[float] = []
    loop = asyncio.get_running_loop()
    last = time.thread_time()
    is_over = False

    def tick() -> None:
        nonlocal last
        found.append(time.thread_time() - last)
        last = time.thread_time()
        if not is_over:
            loop.call_later(0, tick)

    loop.call_soon(tick)
    yield found
    is_over = True
