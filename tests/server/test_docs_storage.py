"""
Pages such as ``docs/storage.md`` show what their commands print.

With ``BARNABAS_WRITE_DOCS=1`` the pages are updated instead.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.server.cli import main
from tests.support.canary import TOPICS, kill, write_canary

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "storage.md"
HELP = ROOT / "docs" / "command-line.md"
BLOCK = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)
ELISION = "..."


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    The directory with the log directories of the page: ``data``, and ``killed`` of a killed broker.
    """
    path = tmp_path_factory.mktemp("canary")
    asyncio.run(write_canary(path / "data"))
    kill(path / "data", path / "killed")
    return path


def commands_in(block: str) -> Iterator[tuple[str, list[str]]]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *lines = part.splitlines()
        yield command, lines


def printed(command: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    program, *arguments = shlex.split(command)
    if program == "ls":
        return sorted(path.name for path in Path(arguments[0]).iterdir())
    assert "barnabas" == program
    try:
        status = main(arguments)
    except SystemExit as end:  # argparse, for --help
        status = int(end.code or 0)
    assert ("killed" in arguments) == status  # ``verify`` finds something there
    return capsys.readouterr().out.splitlines()


def is_shown(shown: list[str], lines: list[str]) -> bool:
    """
    Whether the page shows *lines*, some of which it may omit.
    """
    pattern = "".join(
        r"(?:.*\n)*" if line == ELISION else re.escape(line) + r"\n" for line in shown
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)) is not None


@pytest.mark.parametrize(("path", "least"), [(PAGE, 8), (HELP, 14), (ROOT / "README.md", 1)])
def test_storage_page_shows_the_real_output_of_the_tools(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    path: Path,
    least: int,
) -> None:
    monkeypatch.chdir(directory)
    monkeypatch.setenv("COLUMNS", "100")
    page = path.read_text()
    blocks = BLOCK.findall(page)

    seen = [
        (command, shown, printed(command, capsys))
        for block in blocks
        for command, shown in commands_in(block)
    ]

    assert len(seen) >= least
    if os.environ.get("BARNABAS_WRITE_DOCS"):
        path.write_text(BLOCK.sub(lambda match: _renewed(match[0], capsys), page))
        return
    if path == HELP:
        _, _, listed = seen[0]
        known = {match[1] for line in listed if (match := re.match(r" {4}([a-z-]+)", line))}
        assert known - {"dump-log"} == {
            words[1] for words in (command.split() for command, _, _ in seen) if len(words) == 3
        }
    wrong = [command for command, shown, lines in seen if not is_shown(shown, lines)]
    assert [] == wrong, "BARNABAS_WRITE_DOCS=1 make test brings the page up to date"


def _renewed(block: str, capsys: pytest.CaptureFixture[str]) -> str:
    made = []
    for command, shown in commands_in(block):
        lines = printed(command, capsys)
        is_fine = shown != [ELISION] and is_shown(shown, lines)
        made += [f"$ {command}", *(shown if is_fine else lines)]
    return "\n".join(made) + "\n"


@pytest.mark.parametrize("partition", [f"{topic}-0" for topic in TOPICS])
def test_files_on_the_storage_page_equal_those_of_kafka(
    partition: str, directory: Path, golden: Path
) -> None:
    """
    Byte for byte up to the end of the shorter one.
    """
    theirs, ours = golden / "segments" / "data" / partition, directory / "data" / partition
    ended = sorted(ours.glob("*.log"))[:-1]
    compared = 0

    for log in ended:
        if log.name == sorted(theirs.glob("*.log"))[-1].name:
            break
        for suffix in (".log", ".index", ".timeindex"):
            name = log.with_suffix(suffix).name
            assert (theirs / name).read_bytes() == (ours / name).read_bytes()
            compared += 1

    assert compared >= 3


def test_figures_on_the_storage_page_are_those_of_the_files(directory: Path) -> None:
    first = directory / "data" / "canary-0" / "00000000000000000000"
    small = directory / "data" / "canary-index300-0" / "00000000000000000000"

    sizes = [
        path.with_suffix(suffix).stat().st_size
        for path in (first, small)
        for suffix in (".log", ".index", ".timeindex")
    ]

    assert [109 * 150, 3 * 8, 4 * 12, 49 * 150, 24 * 8, 24 * 12] == sizes
