"""
A stream from topic to topic writes each record once, although its driver or one of its workers is
killed at any write request.

``BARNABAS_KILLS=10`` tries ten requests each instead of one.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.interop.clients.base import PATIENCE, NewRecord
from tests.interop.committed import read_committed
from tests.pipeline.topics import Topic
from tests.support.broker_process import BrokerProcess
from tests.support.spark import QUICK

pytestmark = [pytest.mark.spark, pytest.mark.interop, pytest.mark.prove]

ROOT: Final = Path(__file__).parents[3]
HOOKS: Final = Path(__file__).parent / "hooks"
KILLS: Final = int(os.environ.get("BARNABAS_KILLS", "1"))
REQUESTS: Final = 40
"""With which a run without a kill writes, at least: four micro-batches of two tasks."""
MOST_RUNS: Final = 5
RECORDS: Final = 400


class Program:
    def __init__(self, source: Topic, target: Topic, directory: Path) -> None:
        self._source = source
        self._target = target
        self._directory = directory
        self.counts = directory / "requests"

    def run(self, who: str, at: int, *, sends: bool) -> int:
        """
        The exit status of one run. The request *at*, counted over all runs, is the last.
        """
        told = {"file": str(self.counts), "who": who, "at": at, "sends": sends}
        launch = (
            "import json, os, sys; told = json.loads(os.environ['KILLED_AT']); "
            "told['driver'] = os.getpid(); os.environ['KILLED_AT'] = json.dumps(told); "
            "os.execv(sys.executable, [sys.executable, '-m', *sys.argv[1:]])"
        )
        arguments = (
            self._source.broker.bootstrap,
            self._source.name,
            self._target.name,
            self._directory / "checkpoint",
        )
        ran = subprocess.run(
            [sys.executable, "-c", launch, "tests.pipeline.live.copying", *map(str, arguments)],
            cwd=ROOT,
            start_new_session=True,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
            check=False,
            env={
                **os.environ,
                "JAVA_TOOL_OPTIONS": QUICK,
                "KILLED_AT": json.dumps(told),
                "PYTHONPATH": f"{HOOKS}{os.pathsep}{ROOT}",
            },
        )
        print(ran.stdout[-2000:], ran.stderr[-4000:])
        return ran.returncode

    def requests(self) -> int:
        return len(self.counts.read_text().splitlines()) if self.counts.exists() else 0


def committed(topic: Topic, partitions: int) -> Counter[bytes]:
    found = read_committed(topic.broker.bootstrap, topic.name, partitions)
    return Counter(value for values in found for value in values)


@pytest.mark.parametrize("seed", range(KILLS))
@pytest.mark.parametrize("who", ["worker", "driver"])
def test_each_record_is_written_exactly_once_by_a_killed_stream(
    broker: BrokerProcess, tmp_path: Path, who: str, seed: int
) -> None:
    chance = random.Random(f"{who} {seed}")
    source = Topic(broker, f"killed.{who}.{seed}.from", 2)
    source.send(
        [
            NewRecord(b"%d" % number, partition=number % 2, timestamp_ms=1_700_000_000_000)
            for number in range(RECORDS)
        ]
    )
    target = Topic(broker, f"killed.{who}.{seed}.to", 2)
    program = Program(source, target, tmp_path)
    at, sends = chance.randrange(1, REQUESTS), chance.random() < 0.5

    runs = 1
    while program.run(who, at, sends=sends) != 0:
        runs += 1
        assert runs <= MOST_RUNS, "the query comes to its end"

    assert program.requests() > at, "somebody was killed"
    assert who == "worker" or runs > 1
    assert {b"%d" % number: 1 for number in range(RECORDS)} == committed(target, 2)
