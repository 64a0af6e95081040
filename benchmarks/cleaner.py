"""
Measures the log cleaners of Barnabas and of Apache Kafka on the same directory.

    python -m benchmarks.cleaner                          1 GiB of 100-byte and of 1 KB records
    python -m benchmarks.cleaner --scale 0.1 --sizes 100  a tenth of that, and one size
    python -m benchmarks.cleaner --broker barnabas

Barnabas writes a compacted topic, without cleaning it. Each broker is then started on two copies
of that directory:

* with all of it to clean, alone: how long that takes stands in the broker's log;
* under a producer at 5 MB/s on another topic, with ``log.cleaner.min.compaction.lag.ms`` such that
  there is nothing to clean at first, and all of it after some seconds.

The producer sends at a fixed rate over one connection. A latency counts from when its request was
due, so that a broker that stalls is charged for all that waits behind the stall.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import platform
import random
import re
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from benchmarks import wire
from benchmarks.contender import BusyKafka
from benchmarks.topics import LOCAL, produce_when_possible
from tests.support.apache_kafka import ApacheKafka, PrerequisiteMissing, class_path
from tests.support.broker_process import Barnabas, BrokerProcess, cpu_seconds, wait_for

TOPIC: Final = "compacted"
OTHER_TOPIC: Final = "other"
GIB: Final = 2**30
MIB: Final = 2**20
TIMES_EACH_KEY: Final = 5
"""How many records have the same key, on average; the cleaner keeps one of them."""
REQUEST_BYTES: Final = 16_384
BYTES_PER_SECOND: Final = 5_000_000
WARM_UP_SECONDS: Final = 3.0
BACKOFF_MS: Final = 500
"""
How soon the cleaner finds that there is something to clean.
"""
PATIENCE: Final = 900.0

_CLEANED: Final = {
    ApacheKafka.name: re.compile(
        rf"cleaned log {TOPIC}-0 .*?processed in ([\d.,]+) seconds", re.DOTALL
    ),
    Barnabas.name: re.compile(rf"{TOPIC}-0: cleaned up to offset \d+ in ([\d.,]+) s"),
}


class Latencies:
    """
    When requests were due and how long each took, in seconds.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[float, float]] = []

    def percentile(self, part: float, start: float, end: float) -> float:
        """
        What that part of the requests between two moments did not exceed, in ms; not a number if
        there are too few of them to tell.
        """
        ordered = sorted(took for due, took in self.requests if start <= due < end)
        if len(ordered) * (1 - part) < 1:
            return math.nan
        return 1000 * ordered[int(part * len(ordered))]


@dataclass(frozen=True, slots=True)
class Result:
    """
    One broker on one directory.
    """

    read: int
    """Bytes that there were to clean."""
    left: int
    """Bytes of them that are left."""
    seconds: float
    cpu: float
    """Processor time of the whole process until it was done, its start included."""
    peak: int
    """The most memory that the process ever had, in bytes."""
    idle_p99: float
    """Of a producer while there was nothing to clean, in ms."""
    busy_p99: float

    @property
    def megabytes_per_second(self) -> float:
        return self.read / max(self.seconds, 0.05) / 1e6

    @property
    def slowdown(self) -> float:
        return self.busy_p99 / self.idle_p99


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run what the command line asks for, print a table for each size, and return the exit status.
    """
    options = _parser().parse_args(arguments)
    makers = _makers(options.broker)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(machine)
    for size in options.sizes:
        with tempfile.TemporaryDirectory(prefix="barnabas-bench-", dir=options.directory) as name:
            directory = Path(name)
            template = directory / "template"
            stamp_ms = _fill(template, size, int(GIB * options.scale))
            results = {}
            for make in makers:
                measured = Measured(make, template, directory / "run", stamp_ms)
                result = measured.result(options.idle_seconds)
                results[make.name] = result
                print(f"{size} B, {make.name}: {result.seconds:.1f} s", file=sys.stderr)
            print(_table(size, results), flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--broker", choices=("both", "barnabas", "apache"), default="both")
    parser.add_argument("--scale", type=float, default=1.0, help="a factor on 1 GiB")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1024], help="of the values")
    parser.add_argument("--idle-seconds", type=float, default=10.0, help="of load without cleaning")
    parser.add_argument("--directory", type=Path, help="where the brokers write")
    return parser


Maker = type[BusyKafka] | type[Barnabas]


def _makers(which: str) -> list[Maker]:
    makers: list[Maker] = []
    if which in ("both", "apache"):
        try:
            class_path()
        except PrerequisiteMissing as missing:
            sys.exit(f"Apache Kafka cannot be measured: {missing}")
        makers.append(BusyKafka)
    if which in ("both", "barnabas"):
        makers.append(Barnabas)
    return makers


# The directory.


def _fill(template: Path, value_size: int, total: int) -> int:
    """
    Let Barnabas write a topic of about *total* bytes in *template*, and stop; the timestamp of all
    its records.
    """
    stamp_ms = int(time.time() * 1000)
    broker = Barnabas(template, settings={"log.cleaner.enable": "false"}, bounded=False)
    try:
        broker.start()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        config = {
            "cleanup.policy": "compact",
            "segment.bytes": str(max(MIB, total // 8)),
        }
        admin.create_topics([NewTopic(TOPIC, 1, config=config)])[TOPIC].result(60)
        produce_when_possible(broker, OTHER_TOPIC)
        _send(broker.port, _requests(value_size, total, stamp_ms), total)
        broker.stop()
    finally:
        broker.close()
    return stamp_ms


def _requests(value_size: int, total: int, stamp_ms: int) -> list[bytes]:
    """
    Requests with all keys, each once; together they are about a fifth of *total*.
    """
    numbers = itertools.count()
    values = random.Random(1)
    per_batch = max(1, 900_000 // (value_size + 20))
    requests: list[bytes] = []
    size = 0
    while size < total / TIMES_EACH_KEY:
        records = [
            SimpleRecord(stamp_ms, b"key-%08d" % next(numbers), values.randbytes(value_size))
            for _ in range(per_batch)
        ]
        requests.append(wire.produce_batch_request(TOPIC, bytes(build_batch(records))))
        size += len(requests[-1])
    return requests


def _send(port: int, requests: Sequence[bytes], total: int) -> None:
    """
    Send requests in turns until they are *total* bytes, a few of them under way at a time.
    """
    under_way, sent = 4, 0
    size = wire.produce_response_size(TOPIC)
    with socket.create_connection((LOCAL, port), timeout=60) as connection:
        for number, request in enumerate(itertools.cycle(requests)):
            if number >= under_way:
                assert wire.produce_error(TOPIC, wire.exactly(connection, size)) == 0
            connection.sendall(request)
            sent += len(request)
            if sent >= total:
                break
        for _ in range(min(number + 1, under_way)):
            assert wire.produce_error(TOPIC, wire.exactly(connection, size)) == 0


# The measures.


class Measured:
    """
    One broker on copies of one directory.
    """

    def __init__(self, make: Maker, template: Path, place: Path, stamp_ms: int) -> None:
        self._make = make
        self._template = template
        self._place = place
        self._stamp_ms = stamp_ms

    def result(self, idle_seconds: float) -> Result:
        """
        Measure everything.
        """
        with self._copied() as broker:
            began = time.monotonic()
            broker.start()
            starting = time.monotonic() - began
            seconds = _await_cleaned(broker)
            cpu, peak = cpu_seconds(broker.pid), _peak_bytes(broker.pid)
            left = _bytes_to_clean(broker.data)
        idle_p99, busy_p99 = self._latencies(2 * starting + WARM_UP_SECONDS + idle_seconds)
        read = _bytes_to_clean(self._template / "data")
        return Result(read, left, seconds, cpu, peak, idle_p99, busy_p99)

    def _latencies(self, delay: float) -> tuple[float, float]:
        """
        The p99 of the producer before there is something to clean, and while it is cleaned.

        Args:
            delay: seconds from the start of the broker until there is something.
        """
        latencies = Latencies()
        with self._copied() as broker:
            due_ms = int(time.time() * 1000 + 1000 * delay)
            broker.settings["log.cleaner.min.compaction.lag.ms"] = str(due_ms - self._stamp_ms)
            broker.settings["log.cleaner.backoff.ms"] = str(BACKOFF_MS)
            broker.start()
            produce_when_possible(broker, OTHER_TOPIC)
            began = time.perf_counter()
            due = began + due_ms / 1000 - time.time()
            _produce_until(broker, latencies, lambda: _is_cleaned(broker.data))
            end = time.perf_counter()
        idle_p99 = latencies.percentile(0.99, began + WARM_UP_SECONDS, due)
        return idle_p99, latencies.percentile(0.99, due + BACKOFF_MS / 1000, end)

    @contextmanager
    def _copied(self) -> Iterator[BrokerProcess]:
        """
        A broker, to be started, on a copy of the directory.
        """
        shutil.copytree(self._template / "data", self._place / "data")
        broker = self._make(self._place, bounded=False)
        try:
            yield broker
        finally:
            broker.close()
            shutil.rmtree(self._place)


def _bytes_to_clean(data: Path) -> int:
    """
    All of the topic but its active segment.
    """
    segments = sorted((data / f"{TOPIC}-0").glob("*.log"))
    return sum(path.stat().st_size for path in segments[:-1])


def _is_cleaned(data: Path) -> bool:
    """
    Whether the checkpoint says so; it names the topic with offset 0 before that.
    """
    text = (data / "cleaner-offset-checkpoint").read_text()
    return re.search(rf"^{TOPIC} 0 [1-9]", text, re.MULTILINE) is not None


def _await_cleaned(broker: BrokerProcess) -> float:
    """
    How long the cleaner took, as the broker itself says.
    """
    pattern = _CLEANED[broker.name]
    wait_for(lambda: bool(pattern.search(broker.log_since_start())), "the cleaner", PATIENCE)
    return sum(float(found.replace(",", "")) for found in pattern.findall(broker.log_since_start()))


def _produce_until(
    broker: BrokerProcess, latencies: Latencies, is_over: Callable[[], bool]
) -> None:
    """
    Send at a fixed rate, whatever comes back when, until *is_over*, which is asked ten times a
    second.
    """
    request = wire.produce_request(
        OTHER_TOPIC, b"x" * REQUEST_BYTES, timestamp_ms=int(time.time() * 1000)
    )
    interval = REQUEST_BYTES / BYTES_PER_SECOND
    dues: list[float] = []
    arrivals: list[float] = []
    with socket.create_connection((LOCAL, broker.port), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        Thread(target=_receive, args=(connection, arrivals), daemon=True).start()
        began = time.perf_counter()
        for number in itertools.count():
            due = began + number * interval
            if (wait := due - time.perf_counter()) > 0:
                time.sleep(wait)
            if number % 32 == 0 and is_over():
                break
            if due - began > PATIENCE:
                raise TimeoutError(f"{broker.name} has cleaned nothing in {PATIENCE:.0f} s")
            connection.sendall(request)
            dues.append(due)
        wait_for(lambda: len(arrivals) == len(dues), "the last answers", PATIENCE)
    latencies.requests += [
        (due, arrival - due) for due, arrival in zip(dues, arrivals, strict=True)
    ]


def _receive(connection: socket.socket, arrivals: list[float]) -> None:
    """
    Note when answers come, until the connection is closed.
    """
    size = wire.produce_response_size(OTHER_TOPIC)
    with suppress(OSError):
        while True:
            response = wire.exactly(connection, size)
            arrivals.append(time.perf_counter())
            assert wire.produce_error(OTHER_TOPIC, response) == 0


def _peak_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


# The table.


def _table(size: int, results: Mapping[str, Result]) -> str:
    heads = [ApacheKafka.name, Barnabas.name]
    any_result = next(iter(results.values()))
    lines = [
        f"\nrecords of {size} B, {any_result.read / MIB:,.0f} MiB to clean"
        f"\n{'':40}{heads[0]:>18}{heads[1]:>18}{'ratio':>9}  goal"
    ]

    def line(title: str, unit: str, of: Callable[[Result], float], goal: str = "") -> None:
        values = {name: of(result) for name, result in results.items()}
        cells = "".join(
            f"{f'{values[name]:,.2f} {unit}' if name in values else '-':>18}" for name in heads
        )
        kafka, barnabas = (values.get(name) for name in heads)
        ratio = f"{barnabas / kafka:.3f}" if kafka and barnabas is not None else "-"
        lines.append(f"{title:40}{cells}{ratio:>9}  {goal}".rstrip())

    line("throughput", "MB/s", lambda result: result.megabytes_per_second)
    line("time of the processor, with the start", "s", lambda result: result.cpu)
    line("peak memory", "MiB", lambda result: result.peak / MIB)
    line("left of the bytes", "%", lambda result: 100 * result.left / result.read)
    line("producer p99, nothing to clean", "ms", lambda result: result.idle_p99)
    line("producer p99, while cleaning", "ms", lambda result: result.busy_p99)
    line("- as a multiple of the former", "x", lambda result: result.slowdown, "< 3 (Barnabas)")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
