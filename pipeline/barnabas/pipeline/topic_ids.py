"""
The ids of topics, by which a topic that was deleted and created again is noticed (KIP-516).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from barnabas.client.cluster import Cluster
from barnabas.client.retries import Patience
from barnabas.pipeline.errors import BrokerError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)


def topic_ids_of(cluster: Cluster, topics: Iterable[str]) -> dict[str, UUID]:
    """
    The ids of those of the *topics* that exist. It is empty if the broker does not tell: Kafka does
    from 3.7 on (DescribeTopicPartitions, KIP-966).

    Raises:
        BrokerError, Disconnected: the cluster does not answer.
    """
    names = [TopicRequest(name=name) for name in sorted(topics)]

    def attempt() -> dict[str, UUID]:
        found: dict[str, UUID] = {}
        cursor: Cursor | None = None
        while names:
            request = DescribeTopicPartitionsRequest(topics=names, cursor=cursor)
            answer = cluster.any().ask(request)
            found |= {each.name: each.topic_id for each in answer.topics if not each.error_code}
            cursor = answer.next_cursor
            if cursor is None:
                break
        return found

    try:
        return cluster.retried(attempt)
    except BrokerError as error:
        if error.code != ErrorCode.UNSUPPORTED_VERSION:
            raise
        return {}


def confirmed_ids(cluster: Cluster, known: Mapping[str, UUID]) -> dict[str, UUID]:
    """
    The ids of the *known* topics now. A broker that lags may tell the id of a deleted topic, so the
    cluster is asked again, up to the client's timeout, while one of them differs.

    Raises:
        BrokerError, Disconnected: as ``topic_ids_of``.
    """
    patience = cluster.patience()
    while True:
        found = topic_ids_of(cluster, known)
        changed = [topic for topic in known if found.get(topic, known[topic]) != known[topic]]
        if not changed or not waits(cluster, patience, f"{', '.join(changed)} has another id"):
            return found


def waits(cluster: Cluster, patience: Patience, sentence: str) -> bool:
    """
    Wait to ask the cluster again. Return false if the time is over.
    """
    try:
        patience.after(BrokerError.of(ErrorCode.OFFSET_NOT_AVAILABLE, sentence))
    except BrokerError:
        return False
    cluster.forget()
    return True
