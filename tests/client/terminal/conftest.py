from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import pytest

from barnabas.server.cli import main
from barnabas.testing import Broker


@dataclass
class Terminal:
    """
    Runs commands against one broker and returns what they print.
    """

    broker: Broker
    captured: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch
    errors: str = ""

    def __call__(
        self, command: str, *more: str, given: str | BinaryIO = "", status: int = 0
    ) -> str:
        """
        What a command prints to standard output.

        Args:
            command: words with blanks between, without the connection.
            given: standard input.
            status: the expected exit status.
        """
        self.monkeypatch.setattr("sys.stdin", _Input(given))
        arguments = [*command.split(), *more, "--bootstrap-server", self.broker.bootstrap_servers]
        found = main(arguments)
        out, self.errors = self.captured.readouterr()
        assert found == status, self.errors
        assert "Traceback" not in self.errors
        return out

    def json(self, command: str, *more: str) -> Any:
        return json.loads(self(command, *more, "--json"))

    def consumed(self, command: str) -> list[dict[str, Any]]:
        lines = self(f"consume {command}", "--json").splitlines()
        return sorted(
            (json.loads(line) for line in lines),
            key=lambda each: (each["partition"], each["offset"]),
        )


class _Input:
    def __init__(self, given: str | BinaryIO) -> None:
        self.buffer = io.BytesIO(given.encode()) if isinstance(given, str) else given

    def isatty(self) -> bool:
        return False


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def terminal(
    broker: Broker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Terminal:
    return Terminal(broker, capsys, monkeypatch)
