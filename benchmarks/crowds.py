"""
One client that behaves, alone and beside a crowd that does not.

::

    python -m benchmarks.crowds --pairs 3

Each crowd is a process of its own, and so is the client, which produces records of 1 KB one at a
time. A pair is a measurement alone and one beside the crowd. What counts is the rate, the 99th
percentile of the latency, and the memory of the broker with the crowd and 10 s after it has left;
on a busy machine the broker's processor time for each request, which others do not change.
"""

from __future__ import annotations

import argparse
import json
import resource
import select
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from benchmarks.wire import ask, fetch_request, metadata_request, produce_request
from tests.support.broker_process import Barnabas, cpu_seconds, resident_bytes
from tests.support.certificates import Certificates

MiB: Final = 2**20
ANNOUNCED_BYTES: Final = 90_000_000
RECORD_BYTES: Final = 1000
SETTLED_S: Final = 2.0
"""
How long a crowd is there before it counts: 1,000 first requests at a time are served at once.
"""
GONE_S: Final = 10.0
WAVE: Final = 1000
TOPIC: Final = "crowds"
HANDSHAKING: Final = "handshaking"
"""
The crowd on the listener with TLS.
"""


class Healthy(NamedTuple):
    """
    What the client that behaves has got: requests per second, and seconds.
    """

    rate: float
    p99_s: float
    cpu_s: float = 0.0
    """Of the broker, for each request."""


class Figures(NamedTuple):
    """
    What a crowd did, in medians over the pairs; the largest of the memory.
    """

    crowd: str
    rate_ratio: float
    p99_ratio: float
    cpu_ratio: float
    more_bytes: int
    left_bytes: int

    def __str__(self) -> str:
        more, left = self.more_bytes / MiB, self.left_bytes / MiB
        return (
            f"{self.crowd:<12} rate x{self.rate_ratio:.2f}  p99 x{self.p99_ratio:.2f}"
            f"  processor x{self.cpu_ratio:.2f}  memory {more:+.1f} MiB, afterwards {left:+.1f} MiB"
        )


# The crowds


def connect(port: int, receive_buffer_bytes: int | None = None) -> socket.socket:
    """
    A connection to the broker.
    """
    peer = socket.socket()
    if receive_buffer_bytes is not None:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
    peer.settimeout(60)
    peer.connect(("127.0.0.1", port))
    return peer


def announcing(port: int, count: int) -> Iterator[list[socket.socket]]:
    """
    A large frame is announced, and four bytes of it are sent.
    """
    peers = [connect(port) for _ in range(count)]
    for peer in peers:
        peer.sendall(struct.pack(">i", ANNOUNCED_BYTES) + b"\0\0\0\x09")
    while True:
        yield peers


def not_reading(port: int, count: int) -> Iterator[list[socket.socket]]:
    """
    Records are asked for and not read.
    """
    peers = [connect(port, 4096) for _ in range(count)]
    for peer in peers:
        peer.sendall(fetch_request(TOPIC, 0) * 3)
    while True:
        yield peers


def idle(port: int, count: int) -> Iterator[list[socket.socket]]:
    """
    Connections that ask for nothing; a tenth of them leaves and comes again all the while.
    """
    peers = [connect(port) for _ in range(count)]
    while True:
        yield peers
        for peer in peers[:WAVE]:
            peer.close()
        peers = peers[WAVE:] + [connect(port) for _ in range(WAVE)]
        time.sleep(1)


def handshaking(port: int, count: int) -> Iterator[list[socket.socket]]:
    """
    A handshake of TLS is begun and not finished. The first half of it is sent a byte at a time.
    """
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    hello = outgoing.read()
    half = len(hello) // 2
    peers = [connect(port) for _ in range(count)]
    for peer in peers:
        peer.sendall(hello[:half])
    for at in range(half, len(hello) - 1):
        yield peers
        for peer in peers:
            peer.sendall(hello[at : at + 1])
        time.sleep(1)
    while True:
        yield peers


CROWDS: Final[dict[str, tuple[Callable[[int, int], Iterator[list[socket.socket]]], int]]] = {
    "announcing": (announcing, 1000),
    "not_reading": (not_reading, 1000),
    "idle": (idle, 10_000),
    HANDSHAKING: (handshaking, 1000),
}


def be_crowd(name: str, port: int) -> None:
    """
    Be that crowd until nobody holds the other end of the standard input.
    """
    allow_descriptors()
    make, count = CROWDS[name]
    steps = make(port, count)
    next(steps)
    print("there", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        next(steps)
        time.sleep(0.05)


@contextmanager
def beside(name: str, port: int) -> Iterator[None]:
    """
    Have that crowd there while the body runs.
    """
    command = [sys.executable, "-m", "benchmarks.crowds", "--crowd", name, "--port", str(port)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        yield
        process.stdin.close()
        process.wait(60)


# The client that behaves


def be_healthy(port: int, seconds: float) -> None:
    """
    Produce records one at a time, and print what that took.
    """
    request = produce_request(TOPIC, b"x" * RECORD_BYTES, timestamp_ms=round(time.time() * 1000))
    taken = []
    with connect(port) as connection:
        end = time.perf_counter() + seconds
        while (before := time.perf_counter()) < end:
            ask(connection, request)
            taken.append(time.perf_counter() - before)
    print(
        json.dumps({"rate": len(taken) / seconds, "p99_s": sorted(taken)[len(taken) * 99 // 100]})
    )


def healthy(port: int, pid: int, seconds: float) -> Healthy:
    """
    What a client gets in so many *seconds*, in a process of its own, from the broker *pid*.
    """
    before = cpu_seconds(pid)
    command = [
        *(sys.executable, "-m", "benchmarks.crowds", "--healthy", str(seconds)),
        *("--port", str(port)),
    ]
    output = subprocess.run(command, check=True, capture_output=True).stdout
    got = Healthy(**json.loads(output))
    return got._replace(cpu_s=(cpu_seconds(pid) - before) / (got.rate * seconds))


# The measurement


def measure(broker: Barnabas, name: str, pairs: int, seconds: float) -> Figures:
    """
    Compare the client alone with the client beside that crowd.
    """
    pairs_of: list[tuple[Healthy, Healthy]] = []
    more, left = [], []
    for _ in range(pairs):
        before = resident_bytes(broker.pid)
        alone = healthy(broker.port, broker.pid, seconds)
        port = broker.ports["SSL"] if name == HANDSHAKING else broker.port
        with beside(name, port):
            time.sleep(SETTLED_S)
            there = healthy(broker.port, broker.pid, seconds)
            more.append(resident_bytes(broker.pid) - before)
        time.sleep(GONE_S)
        left.append(resident_bytes(broker.pid) - before)
        pairs_of.append((there, alone))
    return Figures(
        name,
        rate_ratio=median(there.rate / alone.rate for there, alone in pairs_of),
        p99_ratio=median(there.p99_s / alone.p99_s for there, alone in pairs_of),
        cpu_ratio=median(there.cpu_s / alone.cpu_s for there, alone in pairs_of),
        more_bytes=max(more),
        left_bytes=max(left),
    )


def allow_descriptors() -> None:
    """
    Let this process have as many descriptors as it may.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=3, help="measurements of each crowd")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--only", choices=CROWDS, action="append", help="this crowd")
    parser.add_argument("--crowd", choices=CROWDS, help=argparse.SUPPRESS)
    parser.add_argument("--healthy", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.crowd is not None:
        be_crowd(options.crowd, options.port)
    elif options.healthy is not None:
        be_healthy(options.port, options.healthy)
    else:
        run(options.only or [*CROWDS], options.pairs, options.seconds)


def run(names: Sequence[str], pairs: int, seconds: float) -> None:
    """
    Measure each crowd against a fresh broker that has served some connections.
    """
    for name in names:
        with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
            certificates = Certificates(Path(directory) / "certificates")
            broker = Barnabas(Path(directory), settings=certificates.settings(), secured=["SSL"])
            broker.start()
            stack.callback(broker.close)
            with connect(broker.port) as connection:
                ask(connection, metadata_request(TOPIC))
            healthy(broker.port, broker.pid, seconds)
            print(measure(broker, name, pairs, seconds), flush=True)


if __name__ == "__main__":
    main()
