"""
What is another's name on another broker, and what no two runs share, as one word for both.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tests.support.broker_process import BrokerProcess

_RULES: Final = tuple(
    (re.compile(pattern, re.MULTILINE), plain)
    for pattern, plain in (
        (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<uuid>"),
        (r"(?i)(topic_?id\W+|cluster ?id: +|directory[_.]?id\W+)[\w-]{22}", r"\1<id>"),
        (r"[\w-]{22}(?= +/\d)", "<member>"),
        (r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\]", "[<time>]"),
        (r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[:.,]\d{3}Z?", "<time>"),
        (r"(?<![.\d])1[5-9]\d{11}\b", "<time>"),
        (r"\b((?:admin|console-)?(?:client|producer|consumer)-)\d+\b", r"\1<n>"),
        (r"\b(tries=|after )\d+", r"\1<n>"),
        # How long a transaction has lasted, which follows when it began.
        (r"(<time> *\t)\d+ +\t(?=[^\t\n]*\t)", r"\1<n>\t"),
        # How fast it was, and how long it took.
        (r"(\d+ records sent), .*", r"\1, <figures>"),
        (r"^((?:<time>, <time>, )[\d.]+), [\d.]+, (\d+), .*", r"\1, <n>, \2, <figures>"),
        (r"^0\t[\d.]+$", r"0\t<n>"),
        (r"^(Avg latency|Percentiles): .*", r"\1: <figures>"),
        (r"\"avg_throughput\":[\d.E-]+", r'"avg_throughput":<n>'),
        (r"\b\d+ ms ago +", "<n> ms ago "),
        # Where the metadata log ends: Apache Kafka writes to it all the time.
        (r"(HighWatermark: +|Epoch: )\d+$", r"\1<n>"),
        (r"^(1 +\t[\w-]{22}\t)\d+ +\t", r"\1<n>\t"),
        (r"(perf-consumer-<n>\)) +$", r"\1"),
        # Which of the two kcat says depends on whether it has heard of the topic's partitions yet.
        (r"^% (ERROR: Failed to produce message \(\d+ bytes\)|Delivery failed for message): ", ""),
        # Checksums cover timestamps.
        (r"\bcrc: \d+", "crc: <n>"),
        # How the tool was called, and is not in a machine of its own.
        (r"^\tat (Toolbox|(java\.base/)?(java\.lang|jdk\.internal)\.reflect\.).*\n", ""),
        (r"^\t\.\.\. \d+ more", "\t... <n> more"),
    )
)
_ENTRIES: Final = re.compile(r"(?:^\t\(principal=.*\n){2,}", re.MULTILINE)
"""Access control entries of a resource: ``kafka-acls`` has them in a hash set."""


class Plain:
    """
    Makes the words of one broker comparable with those of another.
    """

    def __init__(self, broker: BrokerProcess, directory: Path) -> None:
        self._names = {
            str(broker.data): "<data>",
            str(broker.directory): "<broker>",
            str(directory): "<files>",
            str(broker.port): "<port>",
        }

    def __call__(self, text: str) -> str:
        for name, plain in self._names.items():
            text = text.replace(name, plain)
        for pattern, plain in _RULES:
            text = pattern.sub(plain, text)
        return _ENTRIES.sub(_in_order, text)

    def name(self, text: str, plain: str) -> None:
        """
        From now on call *text* by this name.
        """
        self._names[text] = plain


def _in_order(lines: re.Match[str]) -> str:
    return "".join(sorted(f"{line.rstrip()}\n" for line in lines[0].splitlines()))
