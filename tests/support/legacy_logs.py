"""
Segments as brokers before Apache Kafka 0.11 wrote them, the same for the same seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from barnabas.protocol.compression import CompressionType
from tests.support.legacy_messages import LOG_APPEND_TIME, Legacy, legacy_message, legacy_wrapper
from tests.support.segments import FIRST_TIMESTAMP

_CODECS: Final = (
    CompressionType.NONE,
    CompressionType.NONE,
    CompressionType.GZIP,
    CompressionType.SNAPPY,
    CompressionType.LZ4,
)


class LegacyWriter:
    """
    Writes messages one behind the other, plain ones and wrappers.
    """

    def __init__(
        self, random: Random, *, magic: int, codecs: tuple[CompressionType, ...] = _CODECS
    ) -> None:
        self.next_offset = 0
        self._random = random
        self._magic = magic
        self._codecs = codecs
        self._timestamp = FIRST_TIMESTAMP

    def segment(self, messages: int) -> bytes:
        """
        The next so many messages or a few more, as they lie in a file.
        """
        end = self.next_offset + messages
        return b"".join(iter(lambda: self._next(end), b""))

    def _next(self, end: int) -> bytes:
        if self.next_offset >= end:
            return b""
        codec = self._random.choice(self._codecs)
        if codec is CompressionType.NONE:
            message = self._message()
            self.next_offset = message.offset + 1
            attributes = self._attributes()
            return legacy_message(
                self._magic, *message[:3], timestamp=message.timestamp, attributes=attributes
            )
        return self._wrapper(codec)

    def _attributes(self) -> int:
        return LOG_APPEND_TIME if self._magic and self._random.random() < 0.2 else 0

    def _wrapper(self, codec: CompressionType) -> bytes:
        first = self.next_offset
        inner = list(self._messages(self._random.randint(1, 6)))
        last = inner[-1].offset
        if self._magic:
            inner = [message._replace(offset=message.offset - first) for message in inner]
        return legacy_wrapper(
            self._magic,
            codec,
            inner,
            offset=last,
            timestamp=max(message.timestamp for message in inner),
            attributes=self._attributes(),
        )

    def _messages(self, count: int) -> Iterator[Legacy]:
        for _ in range(count):
            message = self._message()
            self.next_offset = message.offset + 1
            yield message

    def _message(self) -> Legacy:
        random = self._random
        self._timestamp += random.randint(-20, 50)
        return Legacy(
            self.next_offset,
            random.choice((None, *(b"key %d" % number for number in range(12)))),
            random.choice((None, b"", b"v" * random.randint(1, 300))),
            self._timestamp if self._magic else -1,
        )
