"""
Apache Kafka's own dump tool, beside ours.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.storage.dump.command import main
from tests.support.java_programs import run_program

SOURCE = Path(__file__).parents[1] / "interop" / "java" / "Dumps.java"


class Dump(NamedTuple):
    """
    What a run of the tool has printed, and its exit status.
    """

    status: int
    out: str
    err: str


def kafka_dumps(commands: Sequence[Sequence[str]], workplace: Path) -> list[Dump]:
    """
    What Kafka's tool prints for each of *commands*. Stack traces are left out.

    Raises:
        PrerequisiteMissing: there is no Java here, or no Kafka.
    """
    lines = ["\t".join(command) for command in commands]
    (workplace / "commands").write_text("".join(f"{line}\n" for line in lines))
    run_program(SOURCE, str(workplace), level="fatal")
    return [_dump(workplace / str(number)) for number in range(len(commands))]


def _dump(name: Path) -> Dump:
    out, err, status = (
        name.with_suffix(suffix).read_bytes().decode() for suffix in (".out", ".err", ".status")
    )
    kept = [line for line in re.findall(".*\n", err) if not _is_of_trace(line)]
    return Dump(int(status), out, "".join(kept))


def _is_of_trace(line: str) -> bool:
    return line.startswith(("\tat ", "\t... ", "Caused by: "))


def our_dump(command: Sequence[str]) -> Dump:
    """
    What ours prints.
    """
    out, err = io.BytesIO(), io.BytesIO()
    status = main(command, out, err)
    return Dump(status, out.getvalue().decode(), err.getvalue().decode())
