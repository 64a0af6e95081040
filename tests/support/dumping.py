"""
Files made for a dump, and what it says.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.storage.dump.command import main

LOG = "00000000000000000000.log"
KAFKAS = 'Exception in thread "main" '


class Dumped(NamedTuple):
    """
    What a dump has printed, and its exit status.
    """

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """
        The lines behind the two that tell the name and the first offset of a log.
        """
        return self.out.splitlines()[2:]

    @property
    def objects(self) -> list[dict[str, Any]]:
        """
        What was printed as JSON.
        """
        return [json.loads(line) for line in self.out.splitlines()]


def dump(*arguments: str | Path) -> Dumped:
    """
    Run the tool in this process.
    """
    out, err = io.BytesIO(), io.BytesIO()
    status = main([str(argument) for argument in arguments], out, err)
    return Dumped(status, out.getvalue().decode(), err.getvalue().decode())


def dump_log(directory: Path, data: bytes | bytearray, *options: str, name: str = LOG) -> Dumped:
    """
    Dump a log that holds *data*.
    """
    path = directory / name
    path.write_bytes(data)
    return dump(*options, "--files", path)
