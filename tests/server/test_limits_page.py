"""
docs/limits.md states what the tests assert, and nothing else.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from barnabas.coordination.cluster.request_limits import MAX_CONFIG_VALUE_LENGTH
from barnabas.coordination.cluster.topic_names import MAX_NAME_LENGTH
from barnabas.coordination.topics.creation import MAX_PARTITIONS_PER_REQUEST
from barnabas.protocol.codec.primitives import MAX_STRING_BYTES, uvarint
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.server.config import BrokerConfig
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.producers.entry import NUM_BATCHES_TO_RETAIN
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.limits import rows, stated
from tests.support.server import running
from tests.support.wire_client import Disconnected

TESTS = Path(__file__).parents[1]


def test_every_documented_limit_is_asserted_by_a_test() -> None:
    """
    Each row of the page is read by a test with ``stated("the-name-of-the-row")``.
    """
    asserted = {
        name
        for path in TESTS.rglob("test_*.py")
        for name in re.findall(r'stated\(\s*"([a-z0-9-]+)"', path.read_text())
    }

    assert set(rows()) == asserted - {"the-name-of-the-row"}


@pytest.mark.parametrize("name", rows())
def test_every_documented_limit_is_a_quantity(name: str) -> None:
    assert stated(name) > 0


def test_largest_request_matches_the_documentation() -> None:
    assert stated("request-size") == BrokerConfig().socket_request_max_bytes
    assert stated("unauthenticated-request") == BrokerConfig().sasl_server_max_receive_size


def test_topic_size_limits_match_the_documentation() -> None:
    """
    The page states the limits of names, configs, batches and files, and the defaults of the
    options.
    """
    config = BrokerConfig()

    assert stated("topic-name") == MAX_NAME_LENGTH
    assert stated("config-value") == MAX_CONFIG_VALUE_LENGTH
    assert stated("partitions-at-once") == MAX_PARTITIONS_PER_REQUEST
    assert stated("batch-size") == config.message_max_bytes == LogConfig().max_message_bytes
    assert stated("segment-size") == config.log_segment_bytes == LogConfig().segment_bytes
    assert stated("index-size") == config.log_index_size_max_bytes
    assert stated("producer-batches") == NUM_BATCHES_TO_RETAIN
    assert stated("string") == MAX_STRING_BYTES


def test_expiry_times_of_peers_match_the_documentation() -> None:
    config = BrokerConfig()

    assert stated("producer-expiry") == config.producer_id_expiration_ms / 1000
    assert stated("transaction-time") == config.transaction_max_timeout_ms / 1000
    assert stated("connection-idle") == config.connections_max_idle_ms / 1000
    assert stated("session-timeout") == config.group_max_session_timeout_ms / 1000
    assert stated("offset-metadata") == config.offset_metadata_max_bytes
    assert stated("offsets-expiry") == config.offsets_retention_minutes * 60
    assert stated("transactional-id-expiry") == config.transactional_id_expiration_ms / 1000


@pytest.mark.parametrize("length", [MAX_STRING_BYTES, MAX_STRING_BYTES + 1])
async def test_string_beyond_the_limit_closes_the_connection(length: int) -> None:
    """
    In the body of a request; the header is bounded by its size.
    """
    async with running(MemoryFiles()) as broker, await broker.client() as client:
        request = bytearray(client.frame(FindCoordinatorRequest(key="k", key_type=0), 3))
        place = request.index(b"\x02k")
        request[place : place + 2] = uvarint(length + 1) + b"k" * length
        request[:4] = (len(request) - 4).to_bytes(4, "big")
        client.send_bytes(bytes(request))
        if length > MAX_STRING_BYTES:
            with pytest.raises(Disconnected):
                await client.receive()
        else:
            assert await client.receive()


async def test_peers_cannot_create_metric_labels() -> None:
    async with running(MemoryFiles()) as broker:

        async def ask(name: str) -> int:
            async with await broker.client(client_id=name) as client:
                software = ApiVersionsRequest(
                    client_software_name=name, client_software_version=name
                )
                await client.ask(software, 3)
                topic = MetadataRequestTopic(name=name)
                unknown = MetadataRequest(topics=[topic], allow_auto_topic_creation=False)
                await client.ask(unknown, 9)
                await client.ask(
                    InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1), 3
                )
                await client.ask(DescribeGroupsRequest(groups=[name]), 5)
            return len(list(broker.metrics))

        before = await ask("first")
        assert before == [await ask(f"peer-{number}") for number in range(50)][-1]
        assert before < stated("metrics")
