"""
Someone who goes through a chapter of the tour at one broker, and writes down what each tool says.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from tests.interop.tools.catching_up import wait_until_caught_up
from tests.interop.tools.plain import Plain
from tests.interop.tools.toolbox import PATIENCE, Printed, Running, Toolbox
from tests.support.broker_process import BrokerProcess, wait_for

_LAST: Final = frozenset({"kafka-cluster"})
"""
Tools whose options belong to a command, which has to be there first.
"""

_OTHER_NAMES: Final = {
    "kafka-replica-verification": "--broker-list",
    "kcat": "-b",
}
_NO_BROKER: Final = frozenset({"kafka-dump-log", "kafka-storage"})


class Entry(NamedTuple):
    """
    One run of a tool, with everything that is another's name on another broker made plain.
    """

    command: tuple[str, ...]
    status: int
    out: tuple[str, ...]
    err: tuple[str, ...]


class Guide:
    def __init__(self, broker: BrokerProcess, toolbox: Toolbox, directory: Path) -> None:
        self.broker = broker
        self.directory = directory
        self.plain = Plain(broker, directory)
        self._toolbox = toolbox
        self._entries: list[Entry] = []
        directory.mkdir()

    def __call__(self, tool: str, *arguments: str, given: str = "", until: str = "") -> Printed:
        """
        Run a tool, and write down what it prints.
        """
        return self.start(tool, *arguments, given=given, until=until).end()

    def start(self, tool: str, *arguments: str, given: str = "", until: str = "") -> Visit:
        addressed = self._with_address(tool, arguments)
        running = self._toolbox.start(tool, *addressed, given=given, until=until)
        return Visit(self, (tool, *arguments), running)

    def ask(self, tool: str, *arguments: str) -> str:
        """
        What a tool prints, without writing it down.
        """
        return self._toolbox.start(tool, *self._with_address(tool, arguments)).wait().out

    def until(self, is_so: Callable[[str], bool], tool: str, *arguments: str) -> None:
        what = f"{self.broker.name} to be as {tool} {' '.join(arguments)} should show it"
        wait_for(lambda: is_so(self.ask(tool, *arguments)), what, PATIENCE)

    def file(self, name: str, text: str) -> str:
        path = self.directory / name
        path.write_text(text)
        return str(path)

    def write_down(self, command: tuple[str, ...], printed: Printed) -> None:
        """
        Keep what a tool has printed, and let the broker come to know what it has changed.
        """
        wait_until_caught_up(self.broker.port)
        plain = tuple(map(self.plain, command))
        out, err = (tuple(self.plain(text).splitlines()) for text in printed[1:])
        self._entries.append(Entry(plain, printed.status, out, err))

    def take_entries(self) -> list[Entry]:
        """
        All that was written down since the last time.
        """
        taken, self._entries = self._entries, []
        return taken

    def _with_address(self, tool: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
        if tool in _NO_BROKER or "--version" in arguments:
            return arguments
        address = (_OTHER_NAMES.get(tool, "--bootstrap-server"), self.broker.bootstrap)
        return (*arguments, *address) if tool in _LAST else (*address, *arguments)


class Visit:
    def __init__(self, guide: Guide, command: tuple[str, ...], running: Running) -> None:
        self._guide = guide
        self._command = command
        self._running = running

    def end(self) -> Printed:
        """
        Wait for its end, and write down what it has printed.
        """
        printed = self._running.wait()
        self._guide.write_down(self._command, printed)
        return printed

    def interrupt(self) -> Printed:
        self._running.interrupt()
        return self.end()
