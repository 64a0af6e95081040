from __future__ import annotations

from importlib.metadata import version

import pytest

from barnabas.protocol.records import varints
from barnabas.server.cli import EXIT_USAGE, main


def test_version_option_prints_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])

    assert ended.value.code == 0
    is_plain = (varints.__file__ or "").endswith(".py")
    form = "plain Python" if is_plain else "compiled"
    assert f"barnabas {version('barnabas')} ({form})\n" == capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [([], "COMMAND"), (["zzz"], "unknown command zzz, see barnabas --help")],
    ids=["missing", "unknown"],
)
def test_missing_or_unknown_command_prints_the_help(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert EXIT_USAGE == ended.value.code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "meant"),
    [("serv", "serve"), ("verfy", "verify"), ("dumplog", "dump-log"), ("option", "options")],
)
def test_misspelled_command_is_answered_with_a_suggestion(
    given: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([given, "--help"])

    assert EXIT_USAGE == ended.value.code
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"barnabas: error: unknown command {given}; did you mean {meant}?" == said
