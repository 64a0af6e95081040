"""
Loading the event loop without TLS.

asyncio and uvloop load ``ssl``, and OpenSSL with it: a twentieth of what a start does. This broker
speaks no TLS, so while they are loaded something else stands in for that.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _NoTls(ModuleType):
    """
    Has whatever is looked for, and none of it is ever used: numbers, and classes without objects.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return -1 if name.isupper() else type(name, (Exception,), {})


def load_event_loop() -> None:
    """
    Load asyncio, and uvloop where there is one. ``ssl`` can be imported afterwards as always.
    """
    if "asyncio" in sys.modules or "ssl" in sys.modules:
        return
    sys.modules["ssl"] = _NoTls("ssl")
    try:
        import asyncio  # noqa: F401, PLC0415  # Only now it may be loaded.

        import uvloop  # noqa: F401, PLC0415  # The same.
    except ImportError:
        pass  # There is no uvloop, which is said when it would run.
    finally:
        del sys.modules["ssl"]
