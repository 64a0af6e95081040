"""
``kafka-streams-groups`` says the same of a program on Apache Kafka and on Barnabas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.clients.base import NewRecord
from tests.interop.clients.confluent import Confluent
from tests.interop.test_streams import APPLICATION, SOURCE, WordCount
from tests.interop.tools.guide import Entry, Guide
from tests.interop.tools.toolbox import Toolbox
from tests.support.apache_kafka import library
from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import BrokerProcess
from tests.support.java_programs import compiled

pytestmark = pytest.mark.prove

TOOL = "kafka-streams-groups"
OF_GROUP = (TOOL, "--describe", "--group", APPLICATION)
DETAILS = (
    (),
    ("--verbose",),
    ("--offsets",),
    ("--offsets", "--verbose"),
    ("--members",),
    ("--members", "--verbose"),
    ("--state",),
    ("--state", "--verbose"),
)
MEMBER_ID = re.compile(r"(?<= )[\w-]{22}(?= )")
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}


@pytest.fixture
def both(tmp_path: Path) -> Iterator[BothBrokers]:
    with BothBrokers.side_by_side(tmp_path, SETTINGS) as both:
        both.start()
        yield both


def looked_at(guide: Guide, broker: BrokerProcess, directory: Path) -> list[Entry]:
    """
    What the tool has printed from the start of a program to the deletion of its group.
    """
    streams = library("kafka-streams")
    jars = f"{compiled(SOURCE, extra_class_path=streams)}:{streams}"
    for topic in ("lines", "counts"):
        Confluent().create_topic(broker.bootstrap, topic, 2, {})
    lines = [NewRecord(b"a b c", partition=number % 2) for number in range(6)]
    Confluent().produce(broker.bootstrap, "lines", lines, "none")
    guide(TOOL, "--list")
    guide(*OF_GROUP)
    program = WordCount(directory, broker, jars, "streams")
    program.start()
    try:
        guide.until(lambda seen: "Stable" in seen, *OF_GROUP, "--state")
        # All records are read, those of the repartition topic too.
        guide.until(lambda seen: _lags(seen) == {"0"}, *OF_GROUP, "--offsets")
        for details in DETAILS:
            guide(*OF_GROUP, *details)
        for options in ((), ("--state",), ("--state", "Stable"), ("--state", "Empty")):
            guide(TOOL, "--list", *options)
        guide(TOOL, "--delete", "--group", APPLICATION)
        assert 0 == program.stop()
    finally:
        program.close()
    guide.until(lambda seen: "Empty" in seen, *OF_GROUP, "--state")
    for details in DETAILS:
        guide(*OF_GROUP, *details)
    reset = (TOOL, "--reset-offsets", "--group", APPLICATION)
    guide(*reset, "--to-earliest", "--all-input-topics", "--dry-run")
    guide(*reset, "--to-offset", "1", "--input-topic", "lines:0", "--execute")
    guide(*OF_GROUP, "--offsets")
    guide(TOOL, "--delete-offsets", "--group", APPLICATION, "--input-topic", "lines:1")
    guide(*OF_GROUP, "--offsets")
    guide(TOOL, "--delete", "--group", APPLICATION)
    guide(TOOL, "--delete", "--group", APPLICATION)
    guide(*OF_GROUP)
    guide("kafka-topics", "--list")
    return guide.take_entries()


def _lags(printed: str) -> set[str]:
    """
    The lags in a description of offsets, which are last in their lines.
    """
    rows = [line.split() for line in printed.splitlines() if APPLICATION in line]
    return {row[-1] for row in rows if row[0] == APPLICATION}


def _in_order(entry: Entry) -> Entry:
    """
    Lines of members and partitions come in the order of a hash map, by ids that are made anew.
    """
    return entry._replace(out=tuple(sorted(map(_plain, entry.out))))


def _plain(line: str) -> str:
    """
    A line without what no two programs share: ids, and in how many transactions they write.
    """
    line = MEMBER_ID.sub("<id>", " ".join(line.split()))
    return re.sub(r" \d+(?= |$)", " <n>", line) if "-repartition" in line else line


def test_streams_groups_tool_prints_the_same(
    both: BothBrokers, toolbox: Toolbox, tmp_path: Path
) -> None:
    told = []
    for broker in both:
        guide = Guide(broker, toolbox, tmp_path / f"files of {broker.name}")
        directory = tmp_path / f"program of {broker.name}"
        told.append([*map(_in_order, looked_at(guide, broker, directory))])

    kafka, barnabas = told
    assert len(kafka) > 20
    for expected, found in zip(kafka, barnabas, strict=True):
        assert expected == found
    for entry in kafka:
        print(*entry.command, *entry.out, *entry.err, sep="\n  ")
