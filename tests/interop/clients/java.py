"""
Apache Kafka's own Java clients, driven through the program in ``tests/interop/java``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.interop.clients.base import PATIENCE, Client, NewRecord, Place, Seen
from tests.support.java_programs import compiled, run_program

SOURCE = Path(__file__).parent.parent / "java" / "Interop.java"

Fields = Sequence[str]


class Java(Client):
    """
    The reference client.

    Raises:
        PrerequisiteMissing: there is no Java, or Maven is missing or could not fetch the jars.
    """

    name = "Java"

    def __init__(self) -> None:
        compiled(SOURCE)

    def create_topic(
        self, bootstrap: str, topic: str, partitions: int, configs: Mapping[str, str]
    ) -> None:
        pairs = (f"{name}={value}" for name, value in configs.items())
        self._run("create", bootstrap, topic, str(partitions), *pairs)

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[NewRecord], codec: str
    ) -> list[Place]:
        lines = self._run("produce", bootstrap, topic, codec, lines=map(_line, records))
        return [Place(int(partition), int(offset)) for partition, offset in lines]

    def transact(
        self, bootstrap: str, topic: str, records: Sequence[NewRecord], codec: str, size: int
    ) -> list[Place]:
        lines = self._run("transact", bootstrap, topic, codec, str(size), lines=map(_line, records))
        return [Place(int(partition), int(offset)) for partition, offset in lines]

    def read(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[Seen]:
        lines = self._run("read", bootstrap, topic, str(partitions), str(count))
        return [_seen(fields) for fields in lines]

    def consume_in_group(
        self, bootstrap: str, topic: str, group: str, count: int
    ) -> tuple[list[Seen], list[Seen]]:
        members: tuple[list[Seen], list[Seen]] = ([], [])
        for member, *fields in self._run("group", bootstrap, topic, group, str(count)):
            members[int(member)].append(_seen(fields))
        return members

    def _run(self, *arguments: str, lines: Iterable[str] = ()) -> list[Fields]:
        printed = run_program(SOURCE, *arguments, lines=lines, seconds=2 * PATIENCE)
        return [line.split("\t") for line in printed.splitlines()]


def _line(record: NewRecord) -> str:
    headers = ",".join(f"{name.encode().hex()}={_text(value)}" for name, value in record.headers)
    partition = "-" if record.partition is None else str(record.partition)
    timestamp = "-" if record.timestamp_ms is None else str(record.timestamp_ms)
    fields = (partition, timestamp, _text(record.key), _text(record.value), headers)
    return "\t".join(fields) + "\n"


def _seen(fields: Fields) -> Seen:
    partition, offset, timestamp, key, value, headers = fields
    pairs = (header.split("=") for header in headers.split(",") if header)
    return Seen(
        int(partition),
        int(offset),
        int(timestamp),
        _bytes(key),
        _bytes(value),
        tuple((bytes.fromhex(name).decode(), _bytes(value)) for name, value in pairs),
    )


def _text(value: bytes | None) -> str:
    return "-" if value is None else value.hex()


def _bytes(text: str) -> bytes | None:
    return None if text == "-" else bytes.fromhex(text)
