"""
A topic of a broker, as a test uses it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from barnabas.testing.defaults import Config, texts_of
from barnabas.testing.errors import InvalidConfig, UnknownTopic, hides_frame
from barnabas.testing.operations import records as record_operations
from barnabas.testing.operations import topics as topic_operations
from barnabas.testing.records import Appendable, NewRecord, Record, encoded

if TYPE_CHECKING:
    from barnabas.testing.hosts.host import Host
    from barnabas.testing.views import Segment

__tracebackhide__ = hides_frame


class Topic:
    """
    The topic with a name, whether it exists or not.

    It reads and writes the logs themselves, without a client and without the network.
    """

    def __init__(self, host: Host, name: str) -> None:
        self._host = host
        self.name = name

    def create(self, partitions: int = 1, *, config: Config | None = None) -> Self:
        """
        Create the topic, and return it.

        Args:
            config: options of the topic, such as ``{"retention.ms": "7d"}``.

        Raises:
            TopicExists: there is one with that name.
            InvalidTopic: the name or the number of partitions is not acceptable.
            InvalidConfig: an option is unknown, or its value is not acceptable.
            NotRunning: the broker does not run.
        """
        texts = texts_of(config or {})
        try:
            self._host.call(topic_operations.create, self.name, partitions, texts)
        except InvalidConfig as error:
            if "configuration segment.bytes" in str(error):
                hint = "; internal.segment.bytes has no lower limit, for tests"
                raise InvalidConfig(f"{error}{hint}") from None
            raise
        return self

    def delete(self) -> None:
        """
        Delete the topic.

        Raises:
            UnknownTopic: it does not exist.
            NotRunning: the broker does not run.
        """
        self._host.call(topic_operations.delete, self.name)

    @property
    def exists(self) -> bool:
        """
        Whether the topic exists.

        Raises:
            NotRunning: the broker does not run.
        """
        try:
            self._host.call(topic_operations.layout, self.name)
        except UnknownTopic:
            return False
        return True

    @property
    def partitions(self) -> int:
        """
        The number of partitions.

        Raises:
            UnknownTopic: the topic does not exist.
            NotRunning: the broker does not run.
        """
        return self._host.call(topic_operations.layout, self.name).partitions

    def append(self, records: Iterable[Appendable]) -> Self:
        """
        Append records to the logs of the partitions, and return the topic.

        Args:
            records: values, ``(key, value)`` pairs, or ``NewRecord`` for the rest: timestamp,
                headers, partition. Text is encoded as UTF-8. A record without a timestamp gets the
                time of the broker's clock. Keys choose the partition as in Kafka's Java producer;
                records without a key take turns.

        Raises:
            UnknownTopic: the topic, or a partition that a record names, does not exist.
            AppendRefused: a log refuses the records, as it would refuse a producer's.
            TypeError: a record is none of these.
            NotRunning: the broker does not run.
        """
        if isinstance(records, (bytes, str, NewRecord)):
            raise TypeError(f"append takes a list of records: append([{records!r}])")
        layout = self._host.call(topic_operations.layout, self.name)
        built = encoded(
            records,
            partitions=layout.partitions,
            now_ms=layout.now_ms,
            most_bytes=layout.most_batch_bytes,
        )
        self._host.call(record_operations.append, self.name, built)
        return self

    def records(self, partition: int | None = None, *, committed: bool = False) -> list[Record]:
        """
        The records that a consumer would get from the beginning, by partition and offset.

        Args:
            partition: the only one to read; all by default.
            committed: leave out records of transactions that are open or aborted, as a consumer
                does with ``isolation.level=read_committed``.

        Raises:
            UnknownTopic: the topic or the partition does not exist.
            NotRunning: the broker does not run.
        """
        found = self._host.call(record_operations.read, self.name, partition, committed)
        return [
            record for stored in found for record in record_operations.decoded(self.name, stored)
        ]

    @property
    def segments(self) -> list[Segment]:
        """
        The segments, by partition and base offset.

        Raises:
            UnknownTopic: the topic does not exist.
            NotRunning: the broker does not run.
        """
        return self._host.call(topic_operations.segments, self.name)

    def explain(self, partition: int = 0) -> str:
        """
        The text of ``barnabas explain``: why each segment of a partition is as it is, and when it
        is deleted.

        Raises:
            UnknownTopic: the topic or the partition does not exist.
            BrokerError: the log cannot be read.
            NotRunning: the broker does not run.
        """
        # Few tests ask, and it takes some modules.
        from barnabas.testing.operations.explaining import explain  # noqa: PLC0415

        return self._host.call(explain, self.name, partition)

    def __repr__(self) -> str:
        return f"<Topic {self.name}>"
