"""
The response to a request that failed as a whole equals Kafka's, in every version of every API.
"""

from __future__ import annotations

from pathlib import Path
from types import NoneType
from typing import Any, Final
from uuid import UUID

import pytest

from barnabas.coordination.steps import finished
from barnabas.protocol import apis
from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.codec.schema import fields, replace
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import REQUESTS
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsResult
from barnabas.server.requests.error_response import error_response
from barnabas.server.requests.errors import CloseConnection
from barnabas.server.requests.registry import HANDLERS
from tests.support.messages import Samples

GOLDEN: Final = {
    (name, int(version)): {True: full.strip("-"), False: bare.strip("-")}
    for name, version, full, bare in (
        line.split()
        for line in (Path(__file__).parent / "kafka_error_responses.txt").read_text().splitlines()
        if not line.startswith("#")
    )
}
VERSIONS: Final = [(key, version) for key in HANDLERS for version in REQUESTS[key].api.versions]

OWN_SENTENCES: Final = (
    *("FindCoordinator", "DescribeConfigs", "AlterClientQuotas", "DescribeQuorum"),
    *("ReadShareGroupState", "WriteShareGroupState", "ReadShareGroupStateSummary"),
    *("DescribeShareGroupOffsets", "AlterShareGroupOffsets", "DeleteShareGroupOffsets"),
)
"""
Kafka answers these with its sentence for the code, Barnabas with the message of the error.
"""

COORDINATORS_SENTENCES: Final = (
    *("ConsumerGroupHeartbeat", "ConsumerGroupDescribe"),
    *("ShareGroupHeartbeat", "ShareGroupDescribe"),
    *("StreamsGroupHeartbeat", "StreamsGroupDescribe"),
)
"""
Kafka answers these without a sentence, unless it is its coordinator that refuses them.
"""

FIRST_WITH_CODE_OF_ALL: Final = 3
"""
In earlier versions of DescribeLogDirs Kafka hides the error: it answers with no directory.
"""


def failed(key: int, request: Any, version: int, code: ErrorCode, message: str | None) -> Any:
    registration = HANDLERS[key]
    response = finished(error_response(registration, request, version, code, message))
    return decode(registration.response, version, encode(response, version))


def likeness(value: Any, *, has_sentence: bool) -> Any:
    """
    The content of a message, without the order of arrays and without sentences that may differ.
    """
    if isinstance(value, list):
        return sorted((likeness(each, has_sentence=has_sentence) for each in value), key=repr)
    if isinstance(value, int | str | bytes | memoryview | UUID | NoneType):
        return value
    content = {
        field.name: likeness(getattr(value, field.name), has_sentence=has_sentence)
        for field in fields(type(value))
    }
    if has_sentence and content.get("error_message") is not None:
        content["error_message"] = "a sentence"
    return content


def test_kafka_error_responses_cover_exactly_our_versions() -> None:
    assert {(HANDLERS[key].name, version) for key, version in VERSIONS} == set(GOLDEN)


@pytest.mark.parametrize("full", [True, False], ids=["full", "bare"])
@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_error_response_equals_kafkas(key: int, version: int, full: bool) -> None:
    """
    The same code and message in the same fields, the same items, and the same values elsewhere.
    """
    registration = HANDLERS[key]
    request = Samples(full=full).message(registration.request, version)
    golden = GOLDEN[registration.name, version][full]
    if golden == "!":
        return
    expected: Any = decode(registration.response, version, bytes.fromhex(golden))
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if key == apis.DESCRIBE_LOG_DIRS.key and version < FIRST_WITH_CODE_OF_ALL:
        assert expected.results == []
        directory = DescribeLogDirsResult(error_code=code, log_dir="", topics=[])
        expected = replace(expected, results=[directory])

    message = None if registration.name in COORDINATORS_SENTENCES else "m"
    response = failed(key, request, version, code, message)

    has_sentence = registration.name in OWN_SENTENCES
    assert likeness(expected, has_sentence=has_sentence) == likeness(
        response, has_sentence=has_sentence
    )


SENTENCE: Final = ErrorCode.INVALID_PARTITIONS.sentence


@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        (ErrorCode.INVALID_PARTITIONS, "more than there are", "more than there are"),
        (ErrorCode.INVALID_PARTITIONS, SENTENCE, None),
        (ErrorCode.UNKNOWN_SERVER_ERROR, "a secret", None),
    ],
)
def test_error_message_reveals_nothing_of_unexpected_exceptions(
    code: ErrorCode, message: str, expected: str | None
) -> None:
    """
    Kafka's ``ApiError.fromThrowable``.
    """
    topic = CreatePartitionsTopic(name="t", count=1, assignments=None)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=0, validate_only=False)

    response = failed(apis.CREATE_PARTITIONS.key, request, 3, code, message)

    assert [expected] == [result.error_message for result in response.results]


def test_some_apis_always_have_an_error_message() -> None:
    request = Samples(full=True).message(REQUESTS[apis.FIND_COORDINATOR.key], 6)

    response = failed(apis.FIND_COORDINATOR.key, request, 6, ErrorCode.UNKNOWN_SERVER_ERROR, None)

    sentence = ErrorCode.UNKNOWN_SERVER_ERROR.sentence
    assert [sentence] * 2 == [each.error_message for each in response.coordinators]


def test_producer_with_acks_0_is_disconnected() -> None:
    key = apis.PRODUCE.key
    request: Any = Samples(full=True).message(REQUESTS[key], 9)
    request.acks = 0

    with pytest.raises(CloseConnection, match="acks=0"):
        failed(key, request, 9, ErrorCode.UNKNOWN_SERVER_ERROR, None)


def test_error_response_of_a_large_request_is_built_in_steps() -> None:
    topic = CreatePartitionsTopic(name="t", count=1, assignments=None)
    request = CreatePartitionsRequest(topics=[topic] * 1000, timeout_ms=0, validate_only=False)
    registration = HANDLERS[apis.CREATE_PARTITIONS.key]

    steps = error_response(registration, request, 3, ErrorCode.INVALID_PARTITIONS, None)

    assert 1000 <= sum(1 for _ in steps.__await__())
