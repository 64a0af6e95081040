"""
What a transforming producer is told, and what it writes down.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PARTITIONS = 3
"""
Partitions of the topics, and sources: producer n transforms what is in partition n.
"""

PATIENCE = 60
"""
Seconds that a client waits for one answer, but for the records that are still to come.
"""

END = b"end"
"""
The last record of each source.
"""

MOST_RECORDS = 12
"""
Of a transaction.
"""

FENCED = {
    "_FENCED",
    "ProducerFencedError",
    "ProducerFenced",
    "PRODUCER_FENCED",
    "INVALID_PRODUCER_EPOCH",
}
"""
What librdkafka, kafka-python, aiokafka, and the Java client say when another producer has taken
over the transactional id; Java's has two words for it, as the coordinator and the partitions do.
"""

GAVE_UP = {"_TIMED_OUT", "KafkaTimeoutError", "TimeoutError", "TimeoutException"}
"""
What they say when they have waited for long enough.
"""


class Task(NamedTuple):
    """
    The arguments of one process.

    Its transactional id is that of the source: of all processes that have had it, the last started
    one is the only one that may still commit.
    """

    bootstrap: str
    source: int
    name: str
    topic_in: str
    topic_out: str
    group: str
    seed: int
    ledger: Path

    @property
    def transactional_id(self) -> str:
        return f"{self.topic_out}-{self.source}"

    def arguments(self) -> list[str]:
        return [str(field) for field in self]

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> Task:
        bootstrap, source, name, topic_in, topic_out, group, seed, ledger = arguments
        return cls(
            bootstrap,
            int(source),
            name,
            topic_in,
            topic_out,
            group,
            int(seed),
            Path(ledger),
        )


class Ledger:
    """
    One line for each step, in the file before the next step is taken: a killed process has written
    all that it did, but perhaps not the answer to its last request.

    The lines: ``started``, which means that the producer before is fenced, ``begin N FIRST END``,
    ``abort N``, ``aborted N``, ``commit N``, ``committed N``, and ``done`` or ``failed REASON``.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, *words: object) -> None:
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())


class Transaction(NamedTuple):
    """
    What a ledger says about one transaction: it transforms the records from *first* to *end*.
    """

    name: str
    number: int
    first: int
    end: int
    may_be_committed: bool = False
    is_committed: bool = False
    is_aborted: bool = False


def transactions(ledger: Path) -> list[Transaction]:
    found: list[Transaction] = []
    for line in ledger.read_text().splitlines() if ledger.exists() else []:
        word, *numbers = line.split()
        if word == "begin":
            number, first, end = map(int, numbers)
            found.append(Transaction(ledger.stem, number, first, end))
        elif word == "commit":
            found[-1] = found[-1]._replace(may_be_committed=True)
        elif word == "committed":
            found[-1] = found[-1]._replace(is_committed=True)
        elif word == "aborted":
            found[-1] = found[-1]._replace(is_aborted=True)
    return found
