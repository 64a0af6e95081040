"""
``docs/tutorial.md``, from its first line to its last.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.server.test_docs_storage import commands_in, is_shown
from tests.support.broker_process import answers, free_port, wait_for
from tests.support.examples import PLUGIN

PAGE: Final = Path(__file__).parents[2] / "docs" / "tutorial.md"
_BLOCK: Final = re.compile(r"```(sh|python|console)\n(.*?)```", re.DOTALL)
PATIENCE: Final = 60


class Reader:
    """
    Somebody who does what the page says, with two terminals.
    """

    def __init__(self, folder: Path) -> None:
        self.ports = {"9092": str(free_port()), "9644": str(free_port())}
        self._folder = folder
        self._broker: subprocess.Popen[bytes] | None = None
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = os.environ | {"PATH": path, "PYTHONWARNINGS": "ignore"}
        self.commands: list[str] = []

    def follow(self, kind: str, block: str) -> None:
        """
        Do what a block of the page says.
        """
        if kind == "python":
            name = block.partition("\n")[0].removeprefix("# ")
            (self._folder / name).write_text(self._with_ports(block))
        elif kind == "console":
            for command, shown in commands_in(block):
                assert is_shown_with_gaps(shown, self.run(command)), command
        else:
            for command in block.splitlines():
                self._do(command)

    def _do(self, command: str) -> None:
        if command.startswith("barnabas serve"):
            self._serve(command)
        elif command.startswith("pkill"):
            self.kill()
        elif command.startswith("pytest"):
            self.run(f"{command} {shlex.join(PLUGIN)}")
        elif not re.match(r"pip install|python3 -m venv|\. kafka", command):
            self.run(command)  # The environment is there, and other tests install packages.

    def run(self, command: str) -> list[str]:
        """
        The lines that a command prints.
        """
        self.commands.append(command)
        done = subprocess.run(
            ["bash", "-c", self._with_ports(command)],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert 0 == done.returncode, done.stdout[-2000:] + done.stderr[-2000:]
        return [line.rstrip() for line in done.stdout.splitlines()]

    def _serve(self, command: str) -> None:
        port = self.ports["9092"]
        listeners = f"--set listeners=PLAINTEXT://127.0.0.1:{port}"
        self._broker = subprocess.Popen(
            shlex.split(f"{self._with_ports(command)} {listeners}"),
            cwd=self._folder,
            env=self._environment,
            stderr=subprocess.DEVNULL,
        )
        wait_for(lambda: answers(int(port)), "the broker", PATIENCE)

    def kill(self) -> None:
        """
        End the broker as ``kill -9`` does.
        """
        if self._broker is not None:
            self._broker.send_signal(signal.SIGKILL)
            self._broker.wait(PATIENCE)
            self._broker = None

    def _with_ports(self, text: str) -> str:
        for shown, port in self.ports.items():
            text = text.replace(f"localhost:{shown}", f"localhost:{port}")
            text = text.replace(f"127.0.0.1:{shown}", f"127.0.0.1:{port}")
        return text


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


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    yield reader
    reader.kill()


def test_each_step_does_what_the_page_says(reader: Reader) -> None:
    page = PAGE.read_text()

    for kind, block in _BLOCK.findall(page):
        reader.follow(kind, block)

    with urllib.request.urlopen(f"http://localhost:{reader.ports['9644']}/", timeout=10) as answer:
        assert 200 == answer.status
    assert len(reader.commands) >= 10
