"""
What a broker has before the sweep: topics, groups, transactions and tokens that requests name, and
data that is expensive for those who look at it carelessly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from tests.interop.sweep.measured import MeasuredBroker
from tests.support.broker_process import wait_for
from tests.support.build import api_request
from tests.support.group_requests import commit_request, coordinator_request, join_request
from tests.support.many_headers import headers_batch
from tests.support.refusals import codes
from tests.support.sasl_client import SaslClient
from tests.support.server import batch, metadata_request, produce_request
from tests.support.token_requests import new_token
from tests.support.topic_requests import creatable
from tests.support.wire_client import BlockingClient

LISTENER: Final = "SASL_PLAINTEXT"
USER: Final = "peer"
"""
The client whose requests are swept. With an authorizer it may do nothing.
"""
OPEN: Final = "open"
BOMB: Final = "bomb"
MANY_HEADERS: Final = "many-headers"
LONG_NAME: Final = "n" * 249
TOPICS: Final = (OPEN, MANY_HEADERS, LONG_NAME)
PARTITIONS: Final = 10
BOMB_BYTES: Final = 60 << 20
HEADERS: Final = 500_000
MEMBERS: Final = 20
GROUPS: Final = 100
"""
Groups with the longest names: what an answer about all groups has.
"""
LONGEST_ID: Final = "a" * 32_000
DAY_MS: Final = 24 * 60 * 60 * 1000
"""
The timeout of transactions, which no sweep outlives.
"""

SETTINGS: Final[Mapping[str, str]] = {
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{USER}";'
    ),
    "delegation.token.secret.key": "a key",
    "group.initial.rebalance.delay.ms": "0",
    "group.coordinator.rebalance.protocols": "classic,consumer,streams,share",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.max.timeout.ms": f"{DAY_MS}",
    "auto.create.topics.enable": "false",
    "log.retention.ms": "-1",
}
AUTHORIZER: Final[Mapping[str, str]] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


class World(NamedTuple):
    """
    What is known of it.
    """

    topic_ids: Mapping[str, UUID]
    hmac: bytes
    bomb: bytes


@contextmanager
def furnished(
    directory: Path, settings: Mapping[str, str]
) -> Iterator[tuple[MeasuredBroker, World]]:
    """
    A broker with everything.
    """
    broker = MeasuredBroker(directory, settings={**SETTINGS, **settings}, secured=[LISTENER])
    with broker:
        yield broker, _furnish(broker)


def logged_in(broker: MeasuredBroker, **options: Any) -> SaslClient:
    """
    A client that is the user.
    """
    client = SaslClient(broker.ports[LISTENER], **options)
    try:
        client.log_in(USER, USER)
    except BaseException:
        client.close()
        raise
    return client


def _furnish(broker: MeasuredBroker) -> World:
    bomb = bytes(build_batch([SimpleRecord(1, b"k", bytes(BOMB_BYTES))], compression=_ZSTD))
    with BlockingClient(broker.port, seconds=60.0) as client:
        topics = [
            creatable(OPEN, configs={"max.message.bytes": f"{200 << 20}"}),
            creatable(BOMB, PARTITIONS),
            creatable(MANY_HEADERS),
            creatable(LONG_NAME),
        ]
        created = client.ask(api_request("create_topics", topics=topics, timeout_ms=30_000), 7)
        assert {0} == {topic.error_code for topic in created.topics}
        batches: list[tuple[str, int, Any]] = [
            *((BOMB, partition, bomb) for partition in range(PARTITIONS)),
            (MANY_HEADERS, 0, headers_batch(HEADERS, _ZSTD, timestamp=1)),
            *((topic, 0, batch(b"x" * 1000)) for topic in (OPEN, LONG_NAME)),
        ]
        for topic, partition, data in batches:
            answer = client.ask(produce_request(topic, bytes(data), partition=partition), 9)
            assert 0 == answer.responses[0].partition_responses[0].error_code
        for number in range(MEMBERS):
            join = join_request(
                f"kept-{number}",
                group_instance_id="instance",
                session_timeout_ms=1_800_000,
                protocols=[{"name": "range", "metadata": bytes(32_000)}],
            )
            _until_coordinated(client, join, 5)
        for number in range(GROUPS):
            name = f"{number}-".ljust(30_000, "g")
            _until_coordinated(client, commit_request(name, OPEN, {0: 1}), 8)
        _until_coordinated(client, commit_request("committed", OPEN, {0: 1}), 8)
        for name in (OPEN, LONGEST_ID):
            begin = api_request(
                "init_producer_id", transactional_id=name, transaction_timeout_ms=DAY_MS
            )
            _until_coordinated(client, begin, 4)
        ids = {
            each.name: each.topic_id
            for each in client.ask(metadata_request(*TOPICS, BOMB), 12).topics
        }
    with logged_in(broker) as client:
        token = client.ask(new_token(), 3)
        assert 0 == token.error_code
    return World(topic_ids=ids, hmac=bytes(token.hmac), bomb=bomb)


_ZSTD: Final = CompressionType.ZSTD
_LOADING: Final = {14, 15, 16}


def _until_coordinated(client: BlockingClient, request: Any, version: int) -> None:
    """
    Ask until the coordinator has been created and loaded.
    """

    def is_answered() -> bool:
        for kind in (0, 1):
            client.ask(coordinator_request("x", key_type=kind), 4)
        return not _LOADING.intersection(codes(client.ask(request, version), version))

    wait_for(is_answered, "the coordinators", 30.0)
