from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.further import Further


def test_command_receives_its_ports_and_its_directory(tmp_path: Path) -> None:
    """
    Each mention of a spare port is a different port; all survive restarts.
    """
    text = (
        f"Another 1.0={sys.executable} -p {{port}} -m :{{spare_port}}/{{spare_port}} '-d {{data}}'"
    )
    kind = Further.parsed(text)
    broker = kind(tmp_path / "one", settings={"log.flush.interval.ms": "1"})
    other = kind(tmp_path / "other")

    program, *arguments = broker.command()
    spare = arguments[3].removeprefix(":").split("/")
    assert "Another 1.0" == broker.name == kind.name
    assert sys.executable == program
    assert ["-p", str(broker.port), "-m", arguments[3], f"-d {broker.data}"] == arguments
    assert 3 == len({str(broker.port), *spare})
    assert broker.command() == [program, *arguments]
    assert str(other.data) in other.command()[-1]
    assert not {str(broker.port), *spare} & {str(other.port), *other.command()[4][1:].split("/")}


def test_directory_exists_when_the_further_broker_starts(tmp_path: Path) -> None:
    broker = Further.parsed(f"Another={sys.executable} {{port}}")(tmp_path / "new")

    broker.prepare()

    assert [] == list(broker.data.iterdir())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("broker --port {port}", "not NAME=COMMAND: 'broker --port {port}'"),
        ("Another=", "not NAME=COMMAND: 'Another='"),
        ("=sh {port}", "not NAME=COMMAND"),
        ("Another=no-such-broker {port}", "there is no program no-such-broker"),
        ("Another=sh --data {data}", "the command of Another does not say {port}"),
    ],
)
def test_program_that_is_not_a_broker_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Further.parsed(text)
