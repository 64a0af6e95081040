"""
The interface of every client library, so that one test runs with all of them.

A `Session` keeps producers, consumers and the admin client of a library open, which transactions
and positions need. A `Client` opens a session for each call; that of Java runs a program. Options
have Kafka's names with dots as underscores.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar, NamedTuple, Protocol

import pytest

from tests.support.broker_process import wait_for

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""
Every compression a producer may choose.
"""
PATIENCE = 120.0
"""
Seconds after which a client that still waits has failed.
"""
QUIET = 0.3
"""
Seconds without a record after which a consumer is taken to be at the end.
"""
READER: Mapping[str, Any] = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "auto_commit_interval_ms": 3_600_000,
    "isolation_level": "read_uncommitted",
    "session_timeout_ms": 10_000,
    "heartbeat_interval_ms": 50,
    "max_poll_records": 1,
}
"""
Options of a consumer unless a test chooses others.
"""


class NewRecord(NamedTuple):
    """
    A record for a producer; `None` leaves the choice to the client.
    """

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None
    partition: int | None = None


class Seen(NamedTuple):
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Place(NamedTuple):
    partition: int
    offset: int


class Sent(NamedTuple):
    """
    Where the broker stored a record, and the timestamp that it returned.
    """

    partition: int
    offset: int
    timestamp_ms: int


class Cluster(NamedTuple):
    """
    A cluster with one broker.
    """

    cluster_id: str
    controller_id: int
    node_id: int
    host: str
    port: int


class Writer(Protocol):
    def send_records(self, topic: str, records: Sequence[NewRecord]) -> list[Sent]:
        """
        Send *records* in order and wait for all acknowledgements.
        """

    def send(
        self, topic: str, values: Sequence[bytes], *, partition: int | None = 0, **rest: Any
    ) -> list[Sent]:
        records = [NewRecord(value, partition=partition, **rest) for value in values]
        return self.send_records(topic, records)

    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def send_offsets(self, reader: Any, offsets: Mapping[int, int]) -> None:
        """
        Add offsets to the transaction, on behalf of the reader's group.
        """


class Reader(Protocol):
    """
    A consumer; a partition is given by its number in the one topic that it reads.
    """

    consumer: Any
    changes: list[str]
    """
    Assignments in order: "+0,1" for new partitions, "-0" for revoked and "!0" for lost ones.
    """

    def poll(self) -> list[Seen]:
        """
        The records that arrive within a short time.
        """

    def assigned(self) -> set[int]: ...
    def position(self, partition: int) -> int: ...
    def seek(self, partition: int, offset: int) -> None: ...
    def seek_to_beginning(self, partition: int) -> None: ...
    def seek_to_end(self, partition: int) -> None: ...
    def pause(self, partition: int) -> None: ...
    def resume(self, partition: int) -> None: ...
    def committed(self, partition: int) -> int | None: ...
    def commit(self, offsets: Mapping[int, int]) -> None: ...
    def at_time(self, partition: int, timestamp_ms: int) -> int | None:
        """
        The first offset at or after a time, or `None`.
        """

    def bounds(self, partition: int) -> tuple[int, int]: ...
    def close(self) -> None: ...

    def note(self, sign: str, partitions: Sequence[Any]) -> None:
        """
        Add to `changes`, if it is about any partition.
        """
        if partitions:
            self.changes.append(sign + ",".join(map(str, sorted(p.partition for p in partitions))))


class Session(ExitStack):
    """
    The clients of one library for one broker; as a context it closes all of them.
    """

    name: ClassVar[str]
    errors: ClassVar[type[Exception]]
    many: ClassVar[int] = 1000
    """
    Records that the library sends and reads within a second or so.
    """
    small_batches: ClassVar[Mapping[str, int]]
    """
    Options of a producer that sends `many` records in several batches.
    """
    no_offset: ClassVar[int | type[Exception]]
    """
    Code or type of the error for a group without a committed offset and a reset policy.
    """
    out_of_range: ClassVar[int | type[Exception]]
    """
    The same for an offset beyond the end.
    """

    def __init__(self, bootstrap: str) -> None:
        super().__init__()
        self.bootstrap = bootstrap

    def code(self, error: Exception) -> int:
        return int(getattr(error, "errno"))  # noqa: B009  # untyped

    def is_fenced(self, error: Exception) -> bool:
        """
        Whether an error reports a later producer with the same transactional id, if the library
        has a separate error for it.
        """
        return isinstance(error, self.errors)

    def create(
        self,
        topic: str,
        partitions: int = 1,
        replicas: int = 1,
        configs: Mapping[str, str] | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        raise NotImplementedError

    def delete(self, topic: str) -> None:
        raise NotImplementedError

    def topics(self) -> set[str]:
        raise NotImplementedError

    def partitions(self, topic: str) -> int:
        raise NotImplementedError

    def add_partitions(self, topic: str, total: int) -> None:
        raise NotImplementedError

    def delete_records(self, topic: str, before: int) -> None:
        """
        Delete the records of partition 0 below an offset.
        """
        raise NotImplementedError

    def configs(self, name: str, *, of_broker: bool = False) -> Mapping[str, str]:
        """
        All options of a topic or a broker.
        """
        raise NotImplementedError

    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        """
        Set these options of a topic and reset all others.
        """
        raise NotImplementedError

    def cluster(self) -> Cluster:
        raise NotImplementedError

    def groups(self) -> set[str]:
        raise NotImplementedError

    def group(self, group: str) -> tuple[str, list[str]]:
        """
        A group's state and the client ids of its members.
        """
        raise NotImplementedError

    def offsets(self, group: str) -> dict[int, int]:
        raise NotImplementedError

    def writer(self, **options: Any) -> Writer:
        raise NotImplementedError

    def reader(self, topic: str, *partitions: int, **options: Any) -> Reader:
        """
        A consumer with these partitions, or without *partitions* a member of the group *group_id*.

        Args:
            topic: or a pattern, which begins with "^".
        """
        raise NotImplementedError

    @contextmanager
    def refuses(
        self, kind: int | type[Exception] | None = None
    ) -> Iterator[pytest.ExceptionInfo[Exception]]:
        """
        Expect an error of the library: with a code, of a type, or any.
        """
        with pytest.raises(kind if isinstance(kind, type) else self.errors) as refused:
            yield refused
        if isinstance(kind, int):
            assert kind == self.code(refused.value), repr(refused.value)


def read(reader: Reader, count: int) -> list[Seen]:
    """
    The next *count* records; no more may come with them.
    """
    deadline = time.monotonic() + PATIENCE
    seen: list[Seen] = []
    while len(seen) < count:
        assert time.monotonic() < deadline, f"{len(seen)} of {count} records"
        seen += reader.poll()
    return seen


def values(reader: Reader, count: int) -> list[bytes]:
    return [record.value or b"" for record in read(reader, count)]


def nothing_comes(reader: Reader) -> bool:
    deadline = time.monotonic() + QUIET
    while time.monotonic() < deadline:
        if reader.poll():
            return False
    return True


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def wait_for_shares(readers: list[Reader], total: int) -> None:
    """
    Poll members until they share *total* partitions evenly; no record may arrive.
    """

    def are_shared() -> bool:
        for reader in readers:
            assert not reader.poll()
        shares = [reader.assigned() for reader in readers]
        return set(range(total)) == set().union(*shares) and {total // len(readers)} == set(
            map(len, shares)
        )

    wait_for(are_shared, "each member to have its share", PATIENCE)


class Client:
    """
    A client library whose clients live for one call each: those of its session.
    """

    session: ClassVar[type[Session]]
    name: str
    sends_null_headers = True

    def create_topic(
        self, bootstrap: str, topic: str, partitions: int, configs: Mapping[str, str]
    ) -> None:
        with self.session(bootstrap) as session:
            session.create(topic, partitions, 1, configs)

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[NewRecord], codec: str
    ) -> list[Place]:
        """
        Send *records* in order and return where each was stored, once all are acknowledged.
        """
        with self.session(bootstrap) as session:
            sent = session.writer(compression_type=codec).send_records(topic, records)
        return [Place(*each[:2]) for each in sent]

    def transact(
        self, bootstrap: str, topic: str, records: Sequence[NewRecord], codec: str, size: int
    ) -> list[Place]:
        """
        The same in transactions of *size* records; every second one is aborted.
        """
        places: list[Place] = []
        with self.session(bootstrap) as session:
            name = f"{topic}-{self.name}"
            writer = session.writer(compression_type=codec, transactional_id=name)
            for number, start in enumerate(range(0, len(records), size)):
                writer.begin()
                sent = writer.send_records(topic, records[start : start + size])
                places += [Place(*each[:2]) for each in sent]
                (writer.abort if number % 2 else writer.commit)()
        return places

    def read(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[Seen]:
        """
        The first *count* records of *topic*, without a group.
        """
        deadline = time.monotonic() + PATIENCE
        seen: list[Seen] = []
        with self.session(bootstrap) as session:
            reader = session.reader(topic, *range(partitions), max_poll_records=500)
            while len(seen) < count and time.monotonic() < deadline:
                seen += reader.poll()
        return seen

    def consume_in_group(
        self, bootstrap: str, topic: str, group: str, count: int
    ) -> tuple[list[Seen], list[Seen]]:
        """
        Let two members of *group* read until they have *count* records together.

        The members commit what they read and leave.

        Returns:
            The records of each, in its order.
        """
        members: tuple[list[Seen], list[Seen]] = ([], [])
        left = threading.Event()
        deadline = time.monotonic() + PATIENCE

        def take_part(seen: list[Seen]) -> None:
            with self.session(bootstrap) as session:
                reader = session.reader(topic, group_id=group, max_poll_records=500)
                while not left.is_set() and sum(map(len, members)) < count:
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"{sum(map(len, members))} of {count} records")
                    fresh = reader.poll()
                    if fresh:
                        reader.commit({record.partition: record.offset + 1 for record in fresh})
                        seen += fresh

        with ThreadPoolExecutor(2) as threads:
            for each in [threads.submit(take_part, seen) for seen in members]:
                try:
                    each.result()
                finally:
                    left.set()
        return members
