"""
The ``barnabas`` command itself; its subcommands have tests of their own.
"""

from __future__ import annotations

from importlib.metadata import version

import pytest

from barnabas.server.cli import main


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])

    assert ended.value.code == 0
    assert f"barnabas {version('barnabas')}\n" == capsys.readouterr().out


def test_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([])

    assert ended.value.code == 2
    assert "COMMAND" in capsys.readouterr().err
