"""
What Apache Kafka's dump tool and ours print of the files that a trial has left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.storage.state_files.file_names import CLUSTER_METADATA_TOPIC
from tests.interop.differential.answers import LONGEST_RUN_MS
from tests.interop.differential.trial import Trial
from tests.support.kafka_dump import Dump, kafka_dumps, our_dump

SUFFIXES: Final = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
FLAVOURS: Final = (
    ("--print-data-log",),
    ("--deep-iteration",),
    ("--deep-iteration", "--print-data-log", "--verify-index-only"),
    ("--index-sanity-check", "--skip-record-metadata", "--print-data-log"),
    (),
)
DECODERS: Final = {
    CLUSTER_METADATA_TOPIC: "--cluster-metadata-decoder",
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
}
MILLISECONDS: Final = re.compile(r"\b1\d{12}\b")
HORIZON: Final = re.compile(r"OptionalLong\[\d+\]")
CRC: Final = re.compile(r"\bcrc: \d+")


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
    Runs that dump every file of a log directory, in turn with one set of flags or another. The file
    is the last argument.
    """
    flavours = cycle(FLAVOURS)
    for directory in sorted(path for path in data.iterdir() if path.is_dir()):
        decoder = [DECODERS[topic] for topic in DECODERS if directory.name.startswith(f"{topic}-")]
        for suffix in SUFFIXES:
            # One at a time: of several, Kafka tells what is wrong in the order of a hash map.
            for path in sorted(directory.glob(f"*{suffix}")):
                yield (*decoder, *next(flavours), "--files", str(path))


def compare_dumps(trial: Trial, workplace: Path) -> tuple[int, list[Difference]]:
    """
    How many runs there were, and those in which the tools do not agree.

    What ours prints of a file that Barnabas has left is what Kafka's prints of it, to the
    character; and what Kafka's prints of the same file that Kafka has left, but for what each
    broker chooses for itself.
    """
    ours, theirs, comparable = trial.pair.barnabas.data, trial.pair.kafka.data, trial.comparable()
    runs = [*commands(ours)]
    beside = {
        number: (*run[:-1], str(theirs / Path(run[-1]).relative_to(ours)))
        for number, run in enumerate(runs)
        if Path(run[-1]).parent.name in comparable
    }
    of_kafka = kafka_dumps([*runs, *beside.values()], workplace)
    of_ours = [our_dump(run) for run in runs]
    found = [
        Difference(run, kafka, barnabas)
        for run, kafka, barnabas in zip(runs, of_kafka[: len(runs)], of_ours, strict=True)
        if kafka != barnabas
    ]
    for number, kafka in zip(beside, of_kafka[len(runs) :], strict=True):
        one = _leveled(kafka, theirs, trial.started_ms)
        other = _leveled(of_ours[number], ours, trial.started_ms)
        if one != other:
            found.append(Difference(beside[number], one, other))
    return len(of_kafka), found


def _leveled(dump: Dump, data: Path, started_ms: int) -> Dump:
    """
    Without what differs between brokers: directories, times of their clocks and the checksums of
    batches with such times, and the order of producers.
    """

    def time(found: re.Match[str]) -> str:
        is_now = started_ms <= int(found.group()) < started_ms + LONGEST_RUN_MS
        return "now" if is_now else found.group()

    lines = []
    for line in dump.out.replace(str(data), "...").splitlines():
        leveled = HORIZON.sub("OptionalLong[some time]", MILLISECONDS.sub(time, line))
        lines.append(leveled if leveled == line else CRC.sub("crc: ?", leveled))
    if lines and lines[0].endswith(".snapshot"):
        lines.sort()
    if lines and lines[0].endswith(".timeindex"):
        # What arrives in one millisecond has one entry, as in directories.time_index.
        lines = [line for line in lines if not line.startswith("timestamp: now ")]
    return Dump(dump.status, "\n".join(lines), dump.err.replace(str(data), "..."))
