"""
What Apache Kafka's dump tool and ours print of the files that a trial has left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.storage.log_files import CLUSTER_METADATA_TOPIC
from tests.support.kafka_dump import Dump, kafka_dumps, our_dump

SUFFIXES: Final = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
FLAVOURS: Final = (
    ("--print-data-log",),
    ("--deep-iteration",),
    ("--deep-iteration", "--print-data-log", "--verify-index-only"),
    ("--index-sanity-check", "--skip-record-metadata", "--print-data-log"),
    (),
)


class Difference(NamedTuple):
    """
    A run of the tool of which the two print different things.
    """

    command: Sequence[str]
    kafka: Dump
    barnabas: Dump

    def __str__(self) -> str:
        lines = zip(self.kafka.out.splitlines(), self.barnabas.out.splitlines(), strict=False)
        first = next(((one, other) for one, other in lines if one != other), ("", ""))
        return "\n".join(
            (
                f"dump-log {' '.join(self.command)}",
                "  the first line that differs:",
                f"    Kafka    {first[0]}",
                f"    Barnabas {first[1]}",
                f"  status and standard error: {self.kafka.status} {self.kafka.err!r} and "
                f"{self.barnabas.status} {self.barnabas.err!r}",
            )
        )


def commands(data: Path) -> Iterator[tuple[str, ...]]:
    """
    Runs that dump every file of a log directory, in turn with one set of flags or another.
    """
    flavours = cycle(FLAVOURS)
    for directory in sorted(path for path in data.iterdir() if path.is_dir()):
        is_metadata = directory.name.startswith(CLUSTER_METADATA_TOPIC)
        decoder = ("--cluster-metadata-decoder",) if is_metadata else ()
        for suffix in SUFFIXES:
            # One at a time: of several, Kafka tells what is wrong in the order of a hash map.
            for path in sorted(directory.glob(f"*{suffix}")):
                yield (*decoder, *next(flavours), "--files", str(path))


def compare_dumps(data: Path, workplace: Path) -> tuple[int, list[Difference]]:
    """
    How many runs there were, and those in which Kafka's tool and ours do not agree.
    """
    runs = list(commands(data))
    theirs = kafka_dumps(runs, workplace)
    pairs = zip(runs, theirs, map(our_dump, runs), strict=True)
    return len(runs), [Difference(*pair) for pair in pairs if pair[1] != pair[2]]
