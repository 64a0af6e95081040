"""
A scrape of 10,000 partitions is cheap and blocks nobody.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from barnabas.server.http import bounded
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.commands import output_of
from tests.support.limits import stated
from tests.support.server import TestBroker, running
from tests.support.turns import objects_set_aside, turns

pytestmark = pytest.mark.prove

PARTITIONS: Final = 10_000
TRIES: Final = 5
"""
A busy machine makes a turn longer than its work: the shortest counts.
"""
ASK: Final = """
import http.client, sys
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
headers = {"Accept": sys.argv[2], "Accept-Encoding": sys.argv[3]}
for line in sys.stdin:
    connection.request("GET", "/metrics", headers=headers)
    print(len(connection.getresponse().read()), flush=True)
"""


class Cost(NamedTuple):
    """
    Processor time of a scrape: of the process, and of the longest turn of its event loop.
    """

    process_s: float
    turn_s: float
    size: int


@asynccontextmanager
async def many_partitions() -> AsyncIterator[TestBroker]:
    async with running(MemoryFiles(), barnabas_http_listener="0") as broker:
        for number in range(PARTITIONS // 2000):
            await broker.create(f"a-topic-with-a-name-{number}", 2000)
        assert len(broker.partitions) == PARTITIONS
        with objects_set_aside():
            yield broker


async def costs(broker: TestBroker, accept: str, encoding: str) -> list[Cost]:
    # The client is a process of its own: its time is not the broker's.
    client = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        ASK,
        str(broker.http_port),
        accept,
        encoding,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert client.stdin is not None
    assert client.stdout is not None
    found = []
    for _ in range(TRIES):
        async with turns() as measured:
            began_s = time.process_time()
            client.stdin.write(b"\n")
            size = int(await client.stdout.readline())
            process_s = time.process_time() - began_s
        found.append(Cost(process_s, max(measured), size))
    client.stdin.close()
    assert await client.wait() == 0
    return found


@pytest.mark.parametrize(
    ("accept", "encoding"),
    [
        ("text/plain", "identity"),
        ("application/openmetrics-text; version=1.0.0", "gzip"),
    ],
)
async def test_scrape_of_many_partitions_is_cheap_and_does_not_block(
    accept: str, encoding: str
) -> None:
    async with many_partitions() as broker:
        found = await costs(broker, accept, encoding)

    print(*found, sep="\n")
    assert min(cost.process_s for cost in found) <= stated("scrape-time")
    assert min(cost.turn_s for cost in found) <= stated("scrape-turn")
    assert min(cost.size for cost in found) > (PARTITIONS if encoding == "gzip" else 1 << 20)


def test_http_listener_takes_little_memory() -> None:
    """
    Measured in separate processes, where no other test has loaded modules.
    """
    program = """
import asyncio, gc, sys
from tests.support.server import running
from tests.support.http_client import get
def resident():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
async def main():
    options = {"barnabas_http_listener": "0"} if sys.argv[1] == "on" else {}
    async with running(**options) as broker:
        await broker.create("t", 100)
        if broker.http is not None:
            for _ in range(5):
                await get(broker.http_port, "/metrics")
        gc.collect()
        print(resident())
asyncio.run(main())
"""
    if not Path("/proc/self/status").exists():
        pytest.skip("the system does not say how much memory a process has")

    def resident_kib(option: str) -> int:
        return int(output_of(sys.executable, "-c", program, option, cwd=Path(__file__).parents[4]))

    more = min(resident_kib("on") for _ in range(3)) - min(resident_kib("off") for _ in range(3))
    assert more * 1024 <= stated("http-memory")


def test_http_limits_match_the_documentation() -> None:
    assert stated("http-connections") == bounded.MOST_CONNECTIONS
    assert stated("http-request-time") == bounded.REQUEST_S
    assert stated("http-answer-time") == bounded.ANSWER_S
