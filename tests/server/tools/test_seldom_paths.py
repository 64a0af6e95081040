from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from barnabas.server.cli import main
from barnabas.storage.state_files.file_names import LOG_SUFFIX
from tests.support.log_directory import WrittenDirectory, append, some_records

COMMANDS = ["dump-log", "explain", "verify"]
READERS = ["explain", "verify"]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    directory = WrittenDirectory(tmp_path / "data")
    log = directory.log(segment_bytes=1000)
    for start in range(0, 40, 5):
        append(log, some_records(5, start=start))
    directory.stop()
    return directory.path


def arguments_for(command: str, directory: Path | str) -> list[str]:
    if command == "dump-log":
        return [command, "--files", str(Path(directory, "events-0", "0" * 20 + LOG_SUFFIX))]
    if command == "explain":
        return [command, "--data-dir", str(directory), "events-0"]
    return [command, str(directory)]


def failed_line(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    assert "" == out
    assert 1 == err.count("\n")
    return err


@pytest.mark.parametrize("command", READERS)
def test_url_is_refused(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments_for(command, "s3://bucket/data"))

    assert 2 == ended.value.code
    assert "s3://bucket/data is a URL; name a path of this machine\n" in capsys.readouterr().err


@pytest.mark.parametrize(("command", "status"), [("explain", 1), ("verify", 2)])
def test_file_in_place_of_a_directory_is_refused(
    command: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file"
    path.touch()

    assert status == main(arguments_for(command, path))

    assert "ot a directory" in failed_line(capsys)


def test_empty_directory_has_no_topics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 1 == main(arguments_for("explain", tmp_path))

    assert failed_line(capsys).endswith(f"in {tmp_path}, which has no topics\n")


def test_empty_directory_is_reported_as_unformatted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 1 == main(arguments_for("verify", tmp_path))

    assert capsys.readouterr().out.startswith("error meta-properties ")


@pytest.mark.parametrize("command", READERS)
def test_directory_without_permission_is_named(
    command: str,
    written: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse(path: Path) -> list[str]:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(os, "listdir", refuse)

    assert 1 == main(arguments_for(command, written))

    said = f"Cannot list {written}: Permission denied (for user {os.geteuid()})\n"
    assert said in failed_line(capsys)


def test_directory_in_place_of_a_log_file_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "events-0" / ("0" * 20 + LOG_SUFFIX)
    path.mkdir(parents=True)

    assert 1 == main(arguments_for("dump-log", tmp_path))

    assert 'Exception in thread "main" org.apache' in capsys.readouterr().err


@pytest.mark.parametrize("ms", ["253402300800000", "9223372036854775807"])
def test_times_after_the_year_9999_are_numbers(
    ms: str, written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    explain = arguments_for("explain", written)

    assert 0 == main([*explain, "--at", ms])
    assert f"Settings at {ms} ms\n" in capsys.readouterr().out
    assert 1 == main([*explain, "--timestamp", ms])
    assert f"events-0 has no record of {ms} ms or later" in failed_line(capsys)


@pytest.mark.parametrize("command", COMMANDS)
def test_second_run_prints_the_same(
    command: str, written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ["--at", "2026-01-01"] if command == "explain" else []
    first = main([*arguments_for(command, written), *at]), capsys.readouterr()

    assert first == (main([*arguments_for(command, written), *at]), capsys.readouterr())


class FailingOutput(io.RawIOBase):
    def __init__(self, error: OSError) -> None:
        super().__init__()
        self._error = error

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        raise self._error


CLOSED_PIPE = BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
FULL_DISK = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("error", "status", "line"),
    [(CLOSED_PIPE, 141, ""), (FULL_DISK, 1, "barnabas: No space left on device\n")],
    ids=["closed pipe", "full disk"],
)
def test_unwritable_output_ends_a_command(
    command: str, error: OSError, status: int, line: str, written: Path
) -> None:
    out = io.TextIOWrapper(io.BufferedWriter(FailingOutput(error)))
    err = io.TextIOWrapper(io.BytesIO())

    with redirect_stdout(out), redirect_stderr(err):
        assert status == main(arguments_for(command, written))

    err.seek(0)
    assert line == err.read()


@pytest.mark.parametrize("command", COMMANDS)
def test_command_without_standard_output_terminates(
    command: str, written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", None)

    status = main(arguments_for(command, written))

    assert "" == capsys.readouterr().err
    assert status == (1 if command == "verify" else 0)
