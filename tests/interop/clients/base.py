"""
What every client library can do, said in one way, so that one test asks it of all of them.

An adapter uses its library as the library's own documentation would, with the library's default
settings; it only translates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""
Every compression a producer may choose.
"""

PATIENCE = 120.0
"""
Seconds after which a client that still has not got what it waits for has failed.
"""


class NewRecord(NamedTuple):
    """
    A record as it is handed to a producer; ``None`` leaves the choice to the client.
    """

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None
    partition: int | None = None


class Seen(NamedTuple):
    """
    A record as a consumer got it.
    """

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Place(NamedTuple):
    """
    Where the broker says that it put a record.
    """

    partition: int
    offset: int


class Client(Protocol):
    """
    One client library.
    """

    name: str
    sends_null_headers: bool

    def create_topic(
        self, bootstrap: str, topic: str, partitions: int, configs: Mapping[str, str]
    ) -> None:
        """
        Create *topic* through the library's admin client.
        """

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[NewRecord], codec: str
    ) -> list[Place]:
        """
        Send *records* in order and return where each was put, once all are acknowledged.
        """

    def read(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[Seen]:
        """
        The first *count* records of *topic*, without a group.
        """

    def consume_in_group(
        self, bootstrap: str, topic: str, group: str, count: int
    ) -> tuple[list[Seen], list[Seen]]:
        """
        What two members of *group* see, each in its order, until they have *count* together.

        The members commit what they saw and leave.
        """
