"""
A worker of Kafka Connect copies lines from a file to a topic and on to a file, whatever is killed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.interop.committed import read_committed
from tests.interop.connect_worker import PATIENCE, Worker
from tests.support.apache_kafka import class_path, library
from tests.support.broker_process import BrokerProcess, wait_for
from tests.support.some import some

pytestmark = pytest.mark.prove

TOPIC = "lines"

ALL_AT_ONCE = 1_000_000
"""
What of a file is left over when Kafka's connector has filled a batch waits until the file grows
again, even if it waits forever; hence batches that nothing can fill.
"""


@pytest.fixture
def worker(impatient_broker: BrokerProcess, tmp_path: Path) -> Iterator[Worker]:
    class_path()
    jars = library("connect-file")
    with Worker(tmp_path / "worker", impatient_broker, jars) as worker:
        yield worker


class Lines:
    """
    Numbered lines, written to one file and awaited in another.
    """

    def __init__(self, source: Path, sink: Path) -> None:
        self.source = source
        self.sink = sink
        self.written = 0

    def write(self, count: int) -> None:
        with self.source.open("a") as file:
            for number in range(self.written, self.written + count):
                file.write(f"{number}\n")
        self.written += count

    def arrived(self) -> list[int]:
        """
        All whole lines of the sink.
        """
        text = self.sink.read_text() if self.sink.exists() else ""
        return [int(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def write_until_arrived(self, more: int) -> None:
        """
        Write without a pause until *more* lines have arrived.
        """
        goal = len(self.arrived()) + more

        def reached() -> bool:
            self.write(10)
            return len(self.arrived()) >= goal

        wait_for(reached, f"{more} more lines", PATIENCE)

    def wait_for_the_last(self) -> None:
        """
        Wait until the line that was written last has arrived.
        """
        last = self.written - 1
        wait_for(lambda: last in self.arrived()[-1:], f"line {last}", PATIENCE)


def test_connect_copies_lines_in_order(
    impatient_broker: BrokerProcess, worker: Worker, tmp_path: Path
) -> None:
    """
    The broker is restarted, killed, and killed together with the worker, always amid the copying.
    Nothing is left out in the end, and nothing is in the topic twice (KIP-618).
    """
    lines = Lines(tmp_path / "source.txt", tmp_path / "sink.txt")
    source = {"file": str(lines.source), "topic": TOPIC, "batch.size": str(ALL_AT_ONCE)}
    worker.run_connector("source", "file.FileStreamSourceConnector", source)
    sink = {"file": str(lines.sink), "topics": TOPIC}
    worker.run_connector("sink", "file.FileStreamSinkConnector", sink)

    lines.write_until_arrived(1000)
    impatient_broker.restart()
    lines.write_until_arrived(1000)
    impatient_broker.kill()
    impatient_broker.start()
    lines.write_until_arrived(1000)
    impatient_broker.kill()
    worker.kill()
    impatient_broker.start()
    worker.start()
    lines.write_until_arrived(1000)
    lines.wait_for_the_last()

    for name in ("source", "sink"):
        wait_for(partial(worker.runs_task_of, name), f"the task of the {name} to run", PATIENCE)
    _assert_in_order_at_least_once(lines.arrived(), lines.written)
    [values] = read_committed(impatient_broker.bootstrap, TOPIC)
    assert list(range(lines.written)) == [int(value) for value in values]


def _assert_in_order_at_least_once(arrived: list[int], written: int) -> None:
    """
    Each line comes after the one before it; what is repeated is repeated in order as well.
    """
    expected = 0
    for line in some(arrived):
        assert line <= expected, f"{line} arrived before {expected}"
        expected = max(expected, line + 1)
    assert written == expected
