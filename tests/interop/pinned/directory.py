"""
What is in the directories that are kept of each release.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.interop.clients.base import CODECS, NewRecord
from tests.interop.clients.confluent import ConfluentSession
from tests.interop.committed import group_offsets, read_committed

ARCHIVES: Final = Path(__file__).parent
SETTINGS: Final = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
PATIENCE_S: Final = 60.0
RECORDS: Final = 40
GROUP: Final = "readers"
WRITER: Final = "writer"
COMMITTED: Final = 17
TRANSACTIONS: Final = "transactions"
CONFIGURED: Final = "none"
RETENTION_MS: Final = str(20 * 365 * 24 * 3_600_000)
"""The directory is opened years later."""


def fill(bootstrap: str) -> None:
    """
    A topic for each codec, one with a committed and an aborted transaction, and a group.
    """
    with ConfluentSession(bootstrap) as session:
        for name in (*CODECS, TRANSACTIONS):
            session.create(name, configs={"retention.ms": RETENTION_MS})
        for codec in CODECS:
            headers = (("codec", codec.encode()),)
            records = [NewRecord(value, b"key", headers) for value in values(codec)]
            session.writer(compression_type=codec).send_records(codec, records)
        writer = session.writer(transactional_id=WRITER)
        for end in (writer.commit, writer.abort):
            writer.begin()
            writer.send(TRANSACTIONS, values(TRANSACTIONS), key=b"key")
            end()
        session.reader(CONFIGURED, 0, group_id=GROUP).commit({0: COMMITTED})


def write_more(bootstrap: str, *, offset: int | None = None) -> None:
    """
    A transaction of the same producer, and an offset of the group.
    """
    with ConfluentSession(bootstrap) as session:
        writer = session.writer(transactional_id=WRITER)
        writer.begin()
        writer.send(TRANSACTIONS, [b"more"])
        writer.commit()
        if offset is not None:
            session.reader(CONFIGURED, 0, group_id=GROUP).commit({0: offset})


def values(topic: str) -> list[bytes]:
    """
    The values of a topic that a reader of committed records sees.
    """
    return [b"%s %d" % (topic.encode(), number) for number in range(RECORDS)]


def read(bootstrap: str, topic: str) -> list[bytes]:
    [found] = read_committed(bootstrap, topic)
    return found


def committed(bootstrap: str, group: str = GROUP) -> int:
    return group_offsets(bootstrap, group)[CONFIGURED, 0]


def retention(bootstrap: str) -> str:
    with ConfluentSession(bootstrap) as session:
        return session.configs(CONFIGURED)["retention.ms"]
