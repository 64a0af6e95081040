"""
A client that fetches through a session, and keeps what it was told as consumers do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple
from uuid import UUID

from barnabas.protocol.records.batch import batches
from tests.support.build import api_request
from tests.support.server import fetch_topic
from tests.support.wire_client import WireClient


class View(NamedTuple):
    """
    What is known of a partition besides its records.
    """

    high_watermark: int
    log_start_offset: int
    error_code: int


class SessionClient:
    """
    Asks for partitions of one topic, names only what changed since the last request, and takes
    what is left out of an answer to be as it was.
    """

    def __init__(self, client: WireClient, topic: str | UUID, version: int) -> None:
        self.client = client
        self.topic = topic
        self.version = version
        self.session_id = 0
        self.epoch = 0
        self.offsets: dict[int, int] = {}
        self.views: dict[int, View] = {}
        self.records: dict[int, dict[int, bytes]] = {}  # bytes of the batch at each base offset
        self._sent: dict[int, int] = {}
        self._named = {"topic_id" if isinstance(topic, UUID) else "topic": topic}

    async def fetch(self, **options: Any) -> Any:
        """
        One request and its answer, which is taken in unless it refuses the session.
        """
        is_full = self.epoch == 0
        changed = {
            index: offset
            for index, offset in self.offsets.items()
            if is_full or self._sent.get(index) != offset
        }
        forgotten = [] if is_full else sorted(self._sent.keys() - self.offsets.keys())
        fields: dict[str, Any] = {
            "max_wait_ms": 0,
            "min_bytes": 1,
            "session_id": self.session_id,
            "session_epoch": self.epoch,
            "topics": [fetch_topic(self.topic, changed)] if changed else [],
            "forgotten_topics_data": [{**self._named, "partitions": forgotten}]
            if forgotten
            else [],
        }
        answer = await self.client.ask(api_request("fetch", **fields | options), self.version)
        self._sent = dict(self.offsets)
        if answer.error_code:
            self.session_id = self.epoch = 0
            return answer
        self.session_id = answer.session_id
        self.epoch = self.epoch + 1 if self.session_id else 0
        for topic in answer.responses:
            self._learn(topic.partitions)
        return answer

    def _learn(self, partitions: Iterable[Any]) -> None:
        for told in partitions:
            index = told.partition_index
            self.views[index] = View(told.high_watermark, told.log_start_offset, told.error_code)
            for batch in batches(told.records):
                self.records.setdefault(index, {})[batch.base_offset] = bytes(batch.data)
                self.offsets[index] = batch.last_offset + 1
