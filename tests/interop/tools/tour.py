"""
The tour: the same runs of the same tools on both brokers, and where they do not print the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final, NamedTuple

from tests.interop.tools.chapters import PARTS
from tests.interop.tools.guide import Entry, Guide
from tests.interop.tools.toolbox import Toolbox
from tests.support.apache_kafka import CLUSTER_ID
from tests.support.both_brokers import BothBrokers

SETTINGS: Final[Mapping[str, str]] = {
    "node.id": "1",
    "group.initial.rebalance.delay.ms": "0",
    # Partitions of these are made when first needed, fifty by default.
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "log.initial.task.delay.ms": "500",
    # Every client is a super user, so that access control stands in nobody's way.
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""
What both brokers are started with.
"""


class Difference(NamedTuple):
    """
    Lines of one run that are not the same on both brokers.
    """

    command: tuple[str, ...]
    stream: str
    kafka: Sequence[str]
    barnabas: Sequence[str]

    def __str__(self) -> str:
        lines = [f"{' '.join(self.command)}   [{self.stream}]"]
        lines += (f"    Kafka     {line}" for line in self.kafka)
        lines += (f"    Barnabas  {line}" for line in self.barnabas)
        return "\n".join(lines)


class Tour:
    def __init__(self, directory: Path) -> None:
        self._toolbox = Toolbox()
        self._brokers = BothBrokers.side_by_side(
            directory, SETTINGS, of_barnabas={"barnabas.cluster.id": CLUSTER_ID}
        )
        self._guides = [
            Guide(broker, self._toolbox, directory / f"files of {broker.name}")
            for broker in self._brokers
        ]
        self._visited: dict[str, tuple[list[Entry], list[Entry]]] = {}
        self._threads = ThreadPoolExecutor(len(self._brokers))

    def start(self) -> None:
        self._brokers.start()

    def close(self) -> None:
        self._toolbox.close()
        self._brokers.close()

    def visit(self, name: str) -> tuple[list[Entry], list[Entry]]:
        """
        What the tools have printed in this part, on Apache Kafka and on Barnabas.
        """
        if name not in self._visited:
            try:
                for done in [self._threads.submit(PARTS[name], guide) for guide in self._guides]:
                    done.result()
            finally:
                kafka, barnabas = (guide.take_entries() for guide in self._guides)
                self._visited[name] = (kafka, barnabas)
        return self._visited[name]


def differences(kafka: Sequence[Entry], barnabas: Sequence[Entry]) -> Iterator[Difference]:
    """
    Wherever the same run does not end in the same way.
    """
    for theirs, ours in zip(kafka, barnabas, strict=True):
        command = theirs.command
        assert command == ours.command, f"different runs: {command} and {ours.command}"
        if theirs.status != ours.status:
            yield Difference(command, "status", [str(theirs.status)], [str(ours.status)])
        for stream in ("out", "err"):
            pair = (getattr(theirs, stream), getattr(ours, stream))
            for hunk in _hunks(*pair):
                yield Difference(command, stream, *hunk)


def _hunks(kafka: Sequence[str], barnabas: Sequence[str]) -> Iterator[tuple[Sequence[str], ...]]:
    matcher = SequenceMatcher(None, kafka, barnabas, autojunk=False)
    for kind, start, end, other_start, other_end in matcher.get_opcodes():
        if kind != "equal":
            yield kafka[start:end], barnabas[other_start:other_end]
