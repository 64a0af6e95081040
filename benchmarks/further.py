"""
Further brokers beside the two: whatever speaks Kafka's protocol and is started by a command.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.broker_process import BrokerProcess, free_port

PORT: Final = "{port}"
"""
Stands for the port of the loopback interface on which the broker has to listen.
"""
SPARE_PORT: Final = "{spare_port}"
"""
Stands for a port that is free, another one at each mention: for metrics, controllers and the like.
"""
DATA: Final = "{data}"
"""
Stands for the directory that the broker writes to. It exists, and is empty before the first start.
"""


@dataclass(frozen=True, slots=True)
class Further:
    """
    A broker as the command line names it; calling it makes one that is not started.

    Attributes:
        name: the head of its column.
        command: its program and arguments, with the words above to be replaced in them.
    """

    name: str
    command: tuple[str, ...]

    @classmethod
    def parsed(cls, text: str) -> Further:
        """
        Of ``NAME=COMMAND``, the command as a shell takes it.

        Raises:
            ValueError: one of them is missing, or there is no such program, or it would not be told
                its port.
        """
        name, _, command = text.partition("=")
        program, *arguments = shlex.split(command) or [""]
        if not name or not program:
            raise ValueError(f"not NAME=COMMAND: {text!r}")
        found = shutil.which(program)
        if found is None:
            raise ValueError(f"there is no program {program}")
        if not any(PORT in argument for argument in arguments):
            raise ValueError(f"the command of {name} does not say {PORT}")
        return cls(name, (str(Path(found).absolute()), *arguments))

    def __call__(
        self, directory: Path, *, settings: Mapping[str, str] | None = None, bounded: bool = True
    ) -> BrokerProcess:
        """
        A process that writes below *directory*. Only its command says how it is configured, so that
        the *settings* of the others are none of its own.
        """
        return FurtherBroker(self, directory, bounded=bounded)


class FurtherBroker(BrokerProcess):
    """
    Runs the command of a further broker, which keeps its ports over restarts.
    """

    def __init__(self, kind: Further, directory: Path, *, bounded: bool = True) -> None:
        super().__init__(directory, bounded=bounded)
        self.name = kind.name
        self._command = [self._filled(part) for part in kind.command]

    def command(self) -> list[str]:
        return self._command

    def prepare(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True)

    def _filled(self, part: str) -> str:
        while SPARE_PORT in part:
            part = part.replace(SPARE_PORT, str(free_port()), 1)
        return part.replace(PORT, str(self.port)).replace(DATA, str(self.data))
