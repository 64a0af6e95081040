"""
``barnabas completion`` in a real shell, on a terminal of its own.
"""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.server.cli import main
from tests.support.maven import PrerequisiteMissing

PATIENCE_S = 30
CLEAR = "\x15"
"""Ctrl-U, which empties the line."""
SHELLS = {
    "bash": (["bash", "--norc", "-i"], "completions/barnabas", "source completions/barnabas"),
    "zsh": (
        ["zsh", "-f", "-i"],
        "completions/_barnabas",
        "fpath=($PWD/completions $fpath); autoload -Uz compinit; compinit -u -D",
    ),
    "tcsh": (["tcsh", "-f", "-i"], "completions/barnabas.tcsh", "source completions/barnabas.tcsh"),
}
"""How each shell starts without the user's files, where the script is, and how it is loaded."""


class Shell:
    """
    An interactive shell.
    """

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal

    def type(self, keys: str, expected: str) -> None:
        """
        Press *keys* until the shell shows *expected*.
        """
        os.write(self._terminal, keys.encode())
        shown = ""
        deadline = time.monotonic() + PATIENCE_S
        while expected not in shown:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._terminal], [], [], max(0, left))
            assert ready, f"{keys!r} shows {shown!r}"
            shown += os.read(self._terminal, 1 << 16).decode(errors="replace")


@contextmanager
def started(arguments: list[str], folder: Path) -> Iterator[Shell]:
    terminal, other_end = pty.openpty()
    # tcsh completes nothing on a dumb terminal; zsh writes in bold on others.
    kind = "xterm" if arguments[0] == "tcsh" else "dumb"
    process = subprocess.Popen(
        ["setsid", "--ctty", *arguments],
        stdin=other_end,
        stdout=other_end,
        stderr=other_end,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "TERM": kind, "HOME": str(folder)},
    )
    os.close(other_end)
    try:
        yield Shell(terminal)
    finally:
        os.close(terminal)
        process.wait(PATIENCE_S)


@pytest.mark.parametrize("name", SHELLS)
def test_shell_completes_commands_and_options(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which(name) is None:
        raise PrerequisiteMissing(f"{name} is not installed")
    arguments, script, load = SHELLS[name]
    assert main(["completion", name]) == 0
    (tmp_path / script).parent.mkdir()
    (tmp_path / script).write_text(capsys.readouterr().out)

    with started(arguments, tmp_path) as shell:
        shell.type(f"{load}\n", "\n")
        shell.type("echo load''ed\n", "loaded")
        shell.type("barnabas ver\t", "barnabas verify ")
        shell.type(f"{CLEAR}barnabas topics cr\t", "barnabas topics create ")
        shell.type(f"{CLEAR}barnabas groups res\t", "reset-offsets ")
        shell.type(f"{CLEAR}barnabas consume x --boot\t", "--bootstrap-server ")
        shell.type(f"{CLEAR}barnabas completion z\t", "zsh ")
