from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.dump.files import READ_AHEAD_BYTES, LogSlice
from barnabas.storage.fs.disk import DiskFiles
from tests.support.dumping import LOG

COMMAND = [sys.executable, "-c", "from barnabas.server.cli import main; raise SystemExit(main())"]
PATIENCE = 60


@pytest.fixture
def large_log(tmp_path: Path) -> Path:
    """
    More than a pipe holds.
    """
    path = tmp_path / LOG
    with path.open("wb") as file:
        for offset in range(0, 20_000, 20):
            records = [SimpleRecord(1, None, b"x" * 100)] * 20
            file.write(build_batch(records, base_offset=offset))
    return path


@pytest.fixture
def heeded_interrupts() -> Iterator[None]:
    """
    What is started hears SIGINT, even where the tests themselves run in the background.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def close(process: subprocess.Popen[bytes], output: IO[bytes]) -> None:
    """
    As with ``| head -1``.
    """
    output.close()


def interrupt(process: subprocess.Popen[bytes], output: IO[bytes]) -> None:
    """
    Ctrl-C while the pipe is full.
    """
    process.send_signal(signal.SIGINT)
    output.read()


@pytest.mark.usefixtures("heeded_interrupts")
@pytest.mark.parametrize(("end", "status"), [(close, 141), (interrupt, 130)])
def test_closed_output_or_an_interrupt_ends_the_dump_quietly(
    end: Callable[[subprocess.Popen[bytes], IO[bytes]], None], status: int, large_log: Path
) -> None:
    command = [*COMMAND, "dump-log", "--print-data-log", "--files", str(large_log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        end(process, process.stdout)
        found = process.wait(PATIENCE), process.stderr.read()

    assert f"Dumping {large_log}\n" == first.decode()
    assert (status, b"") == found


def test_dump_command_does_not_import_the_server(large_log: Path) -> None:
    code = (
        "import sys; from barnabas.server.cli import main; "
        f"main(['dump-log', '--files', {str(large_log)!r}]); "
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    loaded = set(done.stderr.split())

    assert "barnabas.storage.dump.text_report" in loaded
    assert {"asyncio", "barnabas.server.process", "barnabas.storage.log.log"}.isdisjoint(loaded)
    assert not any(".decoders." in name for name in loaded)


def test_dump_reads_a_log_in_windows(large_log: Path) -> None:
    file = DiskFiles().open(large_log, read_only=True)
    reads: list[int] = []

    class Watched:
        path = large_log

        def read(self, position: int, size: int) -> bytes | bytearray:
            reads.append(size)
            return file.read(position, size)

        def size(self) -> int:
            return file.size()

    batches = list(LogSlice(Watched(), str(large_log)).batches(4096))  # type: ignore[arg-type]  # the rest is not needed

    assert 1000 == len(batches)
    assert {4096} == set(reads)
    assert READ_AHEAD_BYTES < large_log.stat().st_size
    file.close()
