"""
Entries of which there may be any number: what one takes, and who may add one.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.storage.fs.disk import DiskFiles
from tests.support.build import api_request
from tests.support.config_requests import GROUP, SET, TOPIC, change_all
from tests.support.limits import stated
from tests.support.server import TestBroker, metadata_request, running
from tests.support.wire_client import WireClient

AUTHORIZER = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:ANONYMOUS",
}
NOBODY = AUTHORIZER | {"super_users": "User:admin", "metadata_max_idle_interval_ms": "0"}
COUNT, AT_ONCE = 500, 250
Make = Callable[[range], Any]


def topics(numbers: range) -> Any:
    wanted = [
        {
            "name": f"t{number}",
            "num_partitions": 1,
            "replication_factor": 1,
            "assignments": [],
            "configs": [],
        }
        for number in numbers
    ]
    return api_request("create_topics", topics=wanted, timeout_ms=60_000, validate_only=False)


def further_partitions(numbers: range) -> Any:
    wanted = [{"name": f"t{number}", "count": 2, "assignments": None} for number in numbers]
    return api_request("create_partitions", topics=wanted, timeout_ms=60_000, validate_only=False)


def acls(numbers: range) -> Any:
    entries = [
        {
            "resource_type": 2,
            "resource_name": f"t{number}",
            "resource_pattern_type": 3,
            "principal": f"User:u{number}",
            "host": "*",
            "operation": 3,
            "permission_type": 3,
        }
        for number in numbers
    ]
    return api_request("create_acls", creations=entries)


def quotas(numbers: range) -> Any:
    entries = [
        {
            "entity": [{"entity_type": "user", "entity_name": f"u{number}"}],
            "ops": [{"key": "producer_byte_rate", "value": 1000.0 + number, "remove": False}],
        }
        for number in numbers
    ]
    return api_request("alter_client_quotas", entries=entries, validate_only=False)


def group_configs(numbers: range) -> Any:
    option = [("consumer.session.timeout.ms", SET, "45000")]
    return change_all(*((GROUP, f"g{number}", option) for number in numbers))


def topic_configs(numbers: range) -> Any:
    return change_all(
        *((TOPIC, f"t{number}", [("retention.ms", SET, str(10**6 + number))]) for number in numbers)
    )


def credentials(numbers: range) -> Any:
    return api_request(
        "alter_user_scram_credentials",
        deletions=[],
        upsertions=[
            {
                "name": f"u{number}",
                "mechanism": 1,
                "iterations": 4096,
                "salt": b"s" * 20,
                "salted_password": b"p" * 32,
            }
            for number in numbers
        ],
    )


async def used(client: WireClient, make: Make, version: int) -> float:
    """
    The memory of an entry, in the cheaper of two rounds: threads of earlier tests allocate as well.
    """
    answer = await client.ask(make(range(2 * COUNT, 2 * COUNT + 1)), version)
    assert ErrorCode.NONE in codes_in(answer)
    rounds = []
    for begin in (0, COUNT):
        gc.collect()
        tracemalloc.start()
        try:
            for first in range(begin, begin + COUNT, AT_ONCE):
                await client.ask(make(range(first, first + AT_ONCE)), version)
            gc.collect()
            rounds.append(tracemalloc.get_traced_memory()[0] / COUNT)
        finally:
            tracemalloc.stop()
    return min(rounds)


async def test_entries_take_no_more_memory_than_documented(tmp_path: Path) -> None:
    options = AUTHORIZER | {"log_dirs": str(tmp_path)}
    async with running(DiskFiles(), **options) as broker, await broker.client() as client:
        assert await used(client, acls, 3) <= stated("acl-entry")
        assert await used(client, quotas, 1) <= stated("quota-entry")
        assert await used(client, group_configs, 1) <= stated("config-entry")
        assert await used(client, topics, 7) <= stated("partition-entry")
        assert await used(client, topic_configs, 1) <= stated("config-entry")


def codes_in(answer: Any) -> set[ErrorCode]:
    """
    The error codes of an answer and of all that is in it.
    """
    found: set[ErrorCode] = set()
    if isinstance(answer, list):
        for each in answer:
            found |= codes_in(each)
    elif hasattr(answer, "__slots__") or hasattr(answer, "__dict__"):
        code = getattr(answer, "error_code", None)
        if code is not None:
            found.add(ErrorCode(code))
        for name in ("topics", "results", "entries", "responses"):
            found |= codes_in(getattr(answer, name, []))
    return found


@pytest.mark.parametrize(
    ("make", "version", "code"),
    [
        (topics, 7, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (further_partitions, 3, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (acls, 3, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (quotas, 1, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (group_configs, 1, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (topic_configs, 1, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (credentials, 0, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ],
)
async def test_client_without_permissions_adds_no_entry(
    make: Make, version: int, code: ErrorCode
) -> None:
    async with running(**NOBODY) as broker, await broker.client() as client:
        before = records(broker)
        answer = await client.ask(make(range(2)), version)

        assert {code} == codes_in(answer) - {ErrorCode.NONE} if code else set()
        assert before == records(broker)


async def test_client_without_permissions_creates_no_topic_by_asking_for_it() -> None:
    async with running(**NOBODY) as broker, await broker.client() as client:
        before = records(broker)
        answer = await client.ask(metadata_request("wanted", create=True), 9)

        assert ErrorCode.TOPIC_AUTHORIZATION_FAILED == answer.topics[0].error_code
        assert before == records(broker)


def records(broker: TestBroker) -> int:
    """
    The number of records of metadata.
    """
    assert broker.inside is not None
    return broker.inside.controller.log.end_offset
