"""
A broker process that measures the turns of its event loop.

``python turn_meter.py FILE serve ...`` is ``barnabas serve ...`` and keeps the longest turn in FILE
in seconds of processor time, since other processes may use the machine.
"""

from __future__ import annotations

import asyncio
import struct
import sys
import time
from mmap import mmap
from pathlib import Path
from typing import Any, Final

from barnabas.server import process
from barnabas.server.cli import main

EVERY_S: Final = 0.002
"""
The interval of the measurement: turns within it count together.
"""
LONGEST: Final = struct.Struct("=d")


def measure(file: Path) -> None:
    """
    Let the broker of this process measure the turns of its event loop.
    """
    serve: Any = process._serve

    async def measured(*arguments: Any) -> None:
        loop = asyncio.get_running_loop()
        with file.open("r+b") as opened, mmap(opened.fileno(), LONGEST.size) as shared:
            last = time.thread_time()

            def tick() -> None:
                nonlocal last
                took = time.thread_time() - last
                if took > LONGEST.unpack_from(shared)[0]:
                    LONGEST.pack_into(shared, 0, took)
                last = time.thread_time()
                loop.call_later(EVERY_S, tick)

            loop.call_soon(tick)
            await serve(*arguments)

    process._serve = measured  # type: ignore[assignment]  # It takes the same.


if __name__ == "__main__":
    measure(Path(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
