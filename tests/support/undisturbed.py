"""
Starting a process so that whoever ends this one ends that one, too.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_ENDING: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def undisturbed() -> Iterator[None]:
    """
    Signals that end this process do so after the body.

    In which a process is started, say: between its start and the statement that remembers it, an
    exception would leave it running. (To block the signals would not do, for the new process would
    block them as well.) Signals concern the main thread only.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda which, _: came.append(which)) for number in _ENDING
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for which in came:
            signal.raise_signal(which)
