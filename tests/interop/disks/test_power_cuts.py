"""
Power cuts on ext4, xfs and btrfs.

A disk that records every write and every flush (``journal``) is a FUSE file (``fuse``) under a loop
device (``machine``). Brokers live on file systems of it (``recorded``), by the workloads of
``tests/support/crash``. ``explore`` rebuilds the disk as of instants: everything up to the last
flush, and of the later writes all, none, or some part. It mounts each and checks the promises.

``BARNABAS_POWER_CUTS=100000`` cuts the power at so many instants, ``BARNABAS_POWER_CUTS_SEED=N`` at
others. It needs root, loop devices and the programs that make the file systems; without them the
test is skipped, but for CI.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.interop.disks.explore import COPY, OUTCOMES, REPORT, SUBJECTS
from tests.interop.disks.machine import FILE_SYSTEMS
from tests.interop.disks.required import ROOT, require_disks
from tests.support.apache_kafka import ApacheKafka, require_java
from tests.support.crash.count import CRASH_POINTS
from tests.support.crash.transactions import PARTITIONS
from tests.support.transactional_client import SECOND, Client
from tests.support.wire_client import WireClient

COUNT = int(os.environ.get("BARNABAS_POWER_CUTS", "2000"))
SEED = int(os.environ.get("BARNABAS_POWER_CUTS_SEED", "0"))
KAFKA_OPENS = "second_protocol"
"""The life one of whose directories Apache Kafka opens after a power cut, on each file system."""
PROCESSES = 2
"""At a time: mounting waits more than it works."""

pytestmark = [pytest.mark.prove, pytest.mark.timeout(600 if COUNT <= 2000 else 0)]


def parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for number in range(PROCESSES):
        yield names[number::PROCESSES]


@pytest.mark.parametrize("number", range(len(FILE_SYSTEMS)), ids=list(FILE_SYSTEMS))
def test_power_cut_at_any_write_breaks_no_promise(number: int, tmp_path: Path) -> None:

    require_disks()
    name = list(FILE_SYSTEMS)[number]
    count = COUNT * (number + 1) // len(FILE_SYSTEMS) - COUNT * number // len(FILE_SYSTEMS)
    with ExitStack() as stack:
        running = []
        for part, subjects in enumerate(parts(list(SUBJECTS))):
            folder = tmp_path / str(part)
            folder.mkdir()
            share = count * (part + 1) // PROCESSES - count * part // PROCESSES
            arguments = [str(folder), name, str(share), str(SEED), *subjects]
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.interop.disks.explore", *arguments], cwd=ROOT
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            running.append((process, folder))
        failures, unmodelled = [], []
        for process, folder in running:
            assert process.wait() == 0
            report = json.loads((folder / REPORT).read_text())
            failures += report["failures"]
            unmodelled += report["unmodelled"]
            CRASH_POINTS[f"power cuts on {name}"] += report["instants"]
            assert report["unmountable"] <= report["instants"] // 50
        [opened] = tmp_path.glob(f"*/{KAFKA_OPENS}")
        _ask_kafka(opened)
    assert not unmodelled, "the model of a disk does not allow\n" + "\n".join(unmodelled[:20])
    assert not failures, f"{len(failures)} promises are broken\n\n" + "\n\n".join(failures[:5])


def _ask_kafka(folder: Path) -> None:
    """
    Have Apache Kafka open the directory of a broker after a power cut, and read what is committed.
    """
    require_java()
    asked = json.loads((folder / OUTCOMES).read_text())
    kafka = ApacheKafka(folder)
    assert kafka.data == folder / COPY
    kafka.start()
    try:
        asyncio.run(_read_outcome(kafka.port, asked["outcomes"]))
    except AssertionError as error:
        error.add_note(f"Apache Kafka after {asked['place']}")
        raise
    finally:
        kafka.close()


async def _read_outcome(port: int, outcomes: Sequence[Sequence[str]]) -> None:
    async with await WireClient.open(port) as wire:
        client = Client(wire, SECOND)
        found: list[list[str]] = []
        for _ in range(100):
            found = [(await client.read(partition))[0] for partition in PARTITIONS]
            if all(values in outcomes for values in found) and found[0] == found[1]:
                return
            await asyncio.sleep(0.1)  # Its coordinator may have a transaction to complete.
    raise AssertionError(f"{found}, not one of {outcomes}")
