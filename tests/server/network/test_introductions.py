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
from tests.support.wire_client import WireClient, request_frame

INTRODUCTION = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")

LISTED_BY_KAFKA = {
    0: (0, 13),
    1: (4, 18),
    2: (1, 11),
    3: (0, 13),
    8: (2, 10),
    9: (1, 10),
    10: (0, 6),
    11: (0, 9),
    12: (0, 4),
    13: (0, 5),
    14: (0, 5),
    15: (0, 6),
    16: (0, 5),
    17: (0, 1),
    18: (0, 4),
    19: (2, 7),
    20: (1, 6),
    21: (0, 2),
    22: (0, 5),
    23: (2, 4),
    24: (0, 5),
    25: (0, 4),
    26: (0, 5),
    27: (1, 2),
    28: (0, 5),
    29: (1, 3),
    30: (1, 3),
    31: (1, 3),
    32: (1, 4),
    33: (0, 2),
    34: (1, 2),
    35: (1, 5),
    36: (0, 2),
    37: (0, 3),
    38: (1, 3),
    39: (1, 2),
    40: (1, 2),
    41: (1, 3),
    42: (0, 2),
    43: (0, 2),
    44: (0, 1),
    45: (0, 1),
    46: (0, 0),
    47: (0, 0),
    48: (0, 1),
    49: (0, 1),
    50: (0, 0),
    51: (0, 0),
    55: (0, 2),
    57: (0, 2),
    60: (0, 2),
    61: (0, 0),
    64: (0, 0),
    65: (0, 0),
    66: (0, 2),
    68: (0, 1),
    69: (0, 1),
    74: (0, 1),
    75: (0, 0),
    76: (1, 1),
    77: (1, 1),
    78: (1, 2),
    79: (1, 2),
    80: (0, 1),
    81: (0, 0),
    83: (0, 0),
    84: (0, 0),
    85: (0, 1),
    86: (0, 0),
    87: (0, 1),
    88: (0, 0),
    89: (0, 0),
    90: (0, 1),
    91: (0, 0),
    92: (0, 0),
}
"""
The versions that each API has in the answer of Apache Kafka 4.3.1's broker, by its key.
"""


@pytest.mark.parametrize("version", range(5))
async def test_api_versions_lists_kafkas_versions(client: WireClient, version: int) -> None:
    answer = await client.ask(INTRODUCTION, version)

    listed = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    assert 0 == answer.error_code
    assert {key for key in HANDLERS if APIS[key].is_listed} == set(listed)
    assert {key: LISTED_BY_KAFKA[key] for key in listed} == listed


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


async def test_unknown_api_versions_version_is_answered_in_version_0(client: WireClient) -> None:
    frame = bytearray(request_frame(INTRODUCTION, 4, 5))
    frame[6:8] = (99).to_bytes(2)
    client.send_bytes(bytes(frame))

    answer = await client.receive_frame()

    assert bytes([0, 0, 0, 5, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 4]) == answer
    assert 0 == (await client.ask(INTRODUCTION, 4)).error_code


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
