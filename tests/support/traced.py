"""
The memory that objects take, as Python counts it.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable


def memory_taken_by(work: Callable[[], object]) -> int:
    """
    Do some work; return the bytes that are still allocated afterwards.
    """
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
