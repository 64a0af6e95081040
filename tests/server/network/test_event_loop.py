from __future__ import annotations

import subprocess
import sys

LOADS_BOTH = """
import sys
from barnabas.server.network.event_loop import load_event_loop

load_event_loop()
import asyncio
assert {"ssl", "_ssl"}.isdisjoint(sys.modules)
try:
    from uvloop import run
except ImportError:
    run = asyncio.run
run(asyncio.sleep(0))
import ssl
ssl.create_default_context()
load_event_loop()
assert sys.modules["ssl"] is ssl
"""


def test_modules_loaded_without_ssl_run_and_the_real_ssl_module_is_available() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LOADS_BOTH], capture_output=True, text=True, check=False
    )

    assert ("", 0) == (ended.stderr, ended.returncode)
