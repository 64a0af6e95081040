"""
Somebody who reads a page of the documentation and does what it says, with two terminals.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.server.test_docs_storage import commands_in, is_shown
from tests.support.broker_process import free_port, wait_for
from tests.support.commands import output_of
from tests.support.examples import PLUGIN

ROOT: Final = Path(__file__).parents[2]
PATIENCE: Final = 120

_BLOCK: Final = re.compile(r"^( *)```(sh|python|console)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_NOT_DONE: Final = re.compile(r"pip install|python3 -m venv|\. (kafka|~/kafka)|cd ~/")
"""The environment is there, and other tests install packages."""


def blocks_of(page: str) -> Iterator[tuple[str, str]]:
    """
    The language and the text of each block of code of a page, such as docs/storage.md.
    """
    for indent, language, text in _BLOCK.findall((ROOT / page).read_text()):
        yield language, re.sub(f"^{indent}", "", text, flags=re.MULTILINE)


class Reader:
    """
    Does what blocks of code say, in a folder.

    A broker that a page starts is on a free port, and runs until the page kills it, starts another
    one, or ends.
    """

    def __init__(self, folder: Path, others: Mapping[str, str] | None = None) -> None:
        """
        Args:
            others: what stands in the page for something that is elsewhere here; ``{port}`` is the
                port of the broker.
        """
        self.folder = folder
        self.port, self.http_port = free_port(), free_port()
        self.commands: list[str] = []
        """Those that were run, without brokers."""
        self.environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONWARNINGS": "ignore",
            "KAFKA_BOOTSTRAP_SERVERS": f"localhost:{self.port}",
        }
        given = (others or {}).items()
        self._others = {shown: here.replace("{port}", str(self.port)) for shown, here in given}
        for host in ("localhost", "127.0.0.1"):
            self._others[f"{host}:9092"] = f"{host}:{self.port}"
            self._others[f"{host}:9644"] = f"{host}:{self.http_port}"
        self._others["listener=9644"] = f"listener={self.http_port}"
        self._broker: subprocess.Popen[bytes] | None = None

    def follow(self, language: str, block: str, *, compare: bool = True) -> None:
        """
        Do what a block says.

        Args:
            compare: whether a command has to print what the page shows.

        Raises:
            AssertionError: a command fails, or prints something else.
        """
        if language == "python":
            name = block.partition("\n")[0].removeprefix("# ")
            (self.folder / name).write_text(self.as_here(block))
        elif language == "console":
            for command, shown in commands_in(re.sub(r"\\\n *", "", block)):
                if not _NOT_DONE.match(command):
                    printed = self.run(command)
                    assert not compare or is_shown_with_gaps(shown, printed), command
        else:
            for command in _commands(block):
                self._do(command)

    def _do(self, command: str) -> None:
        if command.startswith("barnabas serve"):
            self.serve(command)
        elif command == "kill -9 %1":
            self.end(signal.SIGKILL)
        elif command.startswith("pytest"):
            self.run(f"{command} {shlex.join(PLUGIN)}")
        elif not _NOT_DONE.match(command):
            self.run(command)

    def run(self, command: str) -> list[str]:
        """
        The lines that a command prints.

        Raises:
            AssertionError: it fails.
        """
        self.commands.append(command)
        printed = output_of(
            "bash", "-ec", self.as_here(command), cwd=self.folder, env=self.environment
        )
        return [line.rstrip() for line in printed.splitlines()]

    def serve(self, command: str) -> None:
        """
        Run a broker until ``end``.
        """
        self.end()
        listeners = ["--set", f"listeners=PLAINTEXT://127.0.0.1:{self.port}"]
        told = shlex.split(self.as_here(command), comments=True)
        self._broker = subprocess.Popen(
            [*told, *([] if "--config" in told else listeners)],
            cwd=self.folder,
            env=self.environment,
            stderr=subprocess.DEVNULL,
        )
        ports = [self.port, *([self.http_port] if "barnabas.http.listener" in command else ())]
        wait_for(lambda: all(map(is_open, ports)), "the broker", PATIENCE)

    def end(self, by: signal.Signals = signal.SIGTERM) -> None:
        if self._broker is not None:
            self._broker.send_signal(by)
            self._broker.wait(PATIENCE)
            self._broker = None

    def as_here(self, text: str) -> str:
        """
        What a page says, with the ports and the places of this test.
        """
        for shown, here in self._others.items():
            text = text.replace(shown, here)
        return text


def is_open(port: int) -> bool:
    """
    Whether somebody listens on a port of this machine.
    """
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


def _commands(block: str) -> Iterator[str]:
    """
    The commands of a block: lines, but continued ones and documents within it together.
    """
    lines = iter(block.splitlines())
    for line in lines:
        command = line
        if here := re.search(r"<<'(\w+)'", line):
            for more in lines:
                command += f"\n{more}"
                if more == here[1]:
                    break
        while command.endswith(("\\", "|")):
            command = f"{command.removesuffix(chr(92))} {next(lines).strip()}"
        if command.strip():
            yield command


def is_shown_with_gaps(shown: list[str], lines: list[str]) -> bool:
    """
    As ``is_shown``; "..." also stands for the rest of a line.
    """
    if len(shown) == len(lines) or "..." in shown:
        return is_shown([_as_far(each, lines) for each in shown], lines)
    return False


def _as_far(shown: str, lines: list[str]) -> str:
    """
    The line of *lines* that begins as *shown* does, if that ends with "...".
    """
    if shown == "..." or not shown.endswith("..."):
        return shown
    begin = shown.removesuffix("...")
    return next((line for line in lines if line.startswith(begin)), shown)
