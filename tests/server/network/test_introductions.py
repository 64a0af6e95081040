from __future__ import annotations

import pytest

from barnabas.protocol.apis import APIS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.server.requests.registry import HANDLERS
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.server import TestBroker, running
from tests.support.wire_client import WireClient

INTRODUCTION = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")


@pytest.mark.parametrize("version", range(5))
async def test_every_public_api_is_listed(client: WireClient, version: int) -> None:
    """
    ``tests/interop/test_versions.py`` compares the versions of each with Apache Kafka's.
    """
    answer = await client.ask(INTRODUCTION, version)

    assert 0 == answer.error_code
    assert {key for key in HANDLERS if APIS[key].is_listed} == {
        each.api_key for each in answer.api_keys
    }


@pytest.mark.parametrize("version", [3, 4])
async def test_only_working_features_are_listed(client: WireClient, version: int) -> None:
    answer = await client.ask(INTRODUCTION, version)

    ours = ["eligible.leader.replicas.version", "metadata.version", "transaction.version"]
    # What can be at level 0 is more than old clients understand.
    assert {3: ours[1:2], 4: ours}[version] == [each.name for each in answer.supported_features]
    assert set(zip(ours, (1, 30, 2), (1, 30, 2), strict=True)) == {
        (each.name, each.min_version_level, each.max_version_level)
        for each in answer.finalized_features
    }
    assert answer.finalized_features_epoch >= 0


@pytest.mark.parametrize(
    ("name", "version"), [("", "1"), ("-x", "1"), ("x ", "1"), ("x", ""), ("x", "1\n"), ("x", "1.")]
)
async def test_client_software_name_must_be_valid(
    client: WireClient, name: str, version: str
) -> None:
    answer = await client.ask(
        ApiVersionsRequest(client_software_name=name, client_software_version=version), 3
    )

    assert (ErrorCode.INVALID_REQUEST, []) == (answer.error_code, answer.api_keys)


async def test_client_software_is_logged_when_its_connection_is_closed(
    client: WireClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "barnabas.server.network.connection")
    await client.ask(INTRODUCTION, 4)

    client.send_bytes(b"\0\0\0\x0a\x27\x0f" + bytes(6) + b"\xff\xff")

    assert await client.disconnected()
    assert "'t' (test 1.0) at 127.0.0.1:" in caplog.text
    assert "9999" in caplog.text


@pytest.mark.parametrize("version", range(4))
async def test_find_coordinator_returns_this_broker(
    broker: TestBroker, client: WireClient, version: int
) -> None:
    answer = await client.ask(FindCoordinatorRequest(key="g", key_type=0), version)

    assert (0, 1, "127.0.0.1", broker.port) == (
        answer.error_code,
        answer.node_id,
        answer.host,
        answer.port,
    )
    assert 50 == len(broker.partitions.of_topic("__consumer_offsets"))


@pytest.mark.parametrize("version", range(4, 7))
async def test_several_coordinators_are_found_at_once(
    broker: TestBroker, client: WireClient, version: int
) -> None:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["a", "", "c"])

    answer = await client.ask(request, version)

    assert [(key, 0, 1, "127.0.0.1", broker.port) for key in ("a", "", "c")] == [
        (each.key, each.error_code, each.node_id, each.host, each.port)
        for each in answer.coordinators
    ]


@pytest.mark.parametrize(
    ("key_type", "code"),
    [
        (2, ErrorCode.INVALID_REQUEST),
        (3, ErrorCode.INVALID_REQUEST),
    ],
)
async def test_key_without_a_coordinator_is_reported(
    client: WireClient, key_type: int, code: ErrorCode
) -> None:
    old = await client.ask(FindCoordinatorRequest(key="k", key_type=key_type), 3)
    new = await client.ask(
        FindCoordinatorRequest(key_type=key_type, coordinator_keys=["a", "b"]), 4
    )

    assert (code, -1, "", -1) == (old.error_code, old.node_id, old.host, old.port)
    assert [("a", code, -1, "", -1), ("b", code, -1, "", -1)] == [
        (each.key, each.error_code, each.node_id, each.host, each.port) for each in new.coordinators
    ]


@pytest.mark.parametrize("version", range(6))
async def test_every_producer_gets_a_unique_id(client: WireClient, version: int) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)

    answers = [await client.ask(request, version) for _ in range(3)]

    assert 3 == len({answer.producer_id for answer in answers})
    assert [(0, 0)] * 3 == [(answer.error_code, answer.producer_epoch) for answer in answers]


async def test_producer_ids_are_not_reused_after_a_restart() -> None:
    files = MemoryFiles()
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    ids = []
    for _ in range(2):
        async with running(files) as broker, await broker.client() as client:
            ids += [(await client.ask(request, 4)).producer_id for _ in range(2)]

    assert 4 == len(set(ids))


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"transactional_id": None, "producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": None, "producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        # Nobody has looked for the coordinator, which is what makes its topic.
        ({"transactional_id": "t"}, ErrorCode.NOT_COORDINATOR),
    ],
    ids=str,
)
async def test_invalid_init_producer_id_is_refused(
    client: WireClient, options: dict[str, object], code: ErrorCode
) -> None:
    request = InitProducerIdRequest(transaction_timeout_ms=1000, **options)  # type: ignore[arg-type]  # of several types

    answer = await client.ask(request, 4)

    assert (code, -1, -1) == (answer.error_code, answer.producer_id, answer.producer_epoch)
