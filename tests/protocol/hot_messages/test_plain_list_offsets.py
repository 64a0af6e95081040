"""
ListOffsets of the plain form is read and answered as the general codec does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.codec.primitives import MAX_STRING_BYTES, uvarint
from barnabas.protocol.headers import response_header
from barnabas.protocol.hot_messages.plain_list_offsets import (
    FIRST_FLEXIBLE_VERSION,
    PlainListOffsets,
    read_plain_list_offsets,
)
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)

Asked: TypeAlias = "tuple[int, int, int]"
"""Index, leader epoch, timestamp."""
Topics: TypeAlias = "list[tuple[str, list[Asked]]]"

int8s = st.integers(-(2**7), 2**7 - 1)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
versions = st.sampled_from(
    [version for version in ListOffsetsRequest.api.versions if version >= FIRST_FLEXIBLE_VERSION]
)
older_versions = range(ListOffsetsRequest.api.versions[0], FIRST_FLEXIBLE_VERSION)
names = st.text(max_size=300)
wanted = st.tuples(int32s, int32s, int64s)


def lists_of(least: int, most: int) -> st.SearchStrategy[list[Asked]]:
    return st.lists(wanted, min_size=least, max_size=most, unique_by=lambda asked: asked[0])


contents = st.lists(
    st.tuples(names, lists_of(1, 3) | lists_of(126, 130)),
    min_size=1,
    max_size=3,
    unique_by=lambda topic: topic[0],
)


def request_of(
    topics: Sequence[tuple[str, Sequence[Asked]]],
    replica_id: int = -1,
    isolation_level: int = 0,
) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation_level,
        timeout_ms=30_000,
        topics=[
            ListOffsetsTopic(
                name=name,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=index, current_leader_epoch=epoch, timestamp=timestamp
                    )
                    for index, epoch, timestamp in partitions
                ],
            )
            for name, partitions in topics
        ],
    )


def read(request: ListOffsetsRequest, version: int) -> PlainListOffsets | None:
    return read_plain_list_offsets(encode(request, version), version)


def answer(plain: PlainListOffsets, correlation_id: int) -> bytes:
    """
    The answer with the timestamps as offsets.
    """
    found = [(timestamp, leader_epoch) for _, _, leader_epoch, timestamp in plain.asked]
    return plain.answer(correlation_id.to_bytes(4, signed=True), found)


def encoded_answer(request: ListOffsetsRequest, version: int, correlation_id: int) -> bytes:
    """
    The same as the general codec writes it.
    """
    response = ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=one.partition_index,
                        error_code=0,
                        offset=one.timestamp,
                        leader_epoch=one.current_leader_epoch,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
    header = response_header(ListOffsetsRequest.api.key, version, correlation_id)
    encoded = header + encode(response, version)
    return len(encoded).to_bytes(4) + encoded


@given(versions, contents, int8s, st.lists(int32s, min_size=1, max_size=2))
def test_a_request_of_the_plain_form_is_read_and_answered_as_by_the_codec(
    version: int, topics: Topics, isolation_level: int, correlation_ids: list[int]
) -> None:
    request = request_of(topics, isolation_level=isolation_level)

    plain = read(request, version)

    assert plain is not None
    assert plain.isolation_level == isolation_level
    assert plain.asked == [
        (name.encode(), *asked) for name, partitions in topics for asked in partitions
    ]
    for correlation_id in correlation_ids:
        assert encoded_answer(request, version, correlation_id) == answer(plain, correlation_id)


@pytest.mark.parametrize("version", range(FIRST_FLEXIBLE_VERSION, 12))
def test_requests_of_another_form_are_left_to_the_codec(version: int) -> None:
    one = (0, 0, -1)
    plain = request_of([("t", [one])])
    # Without the count of 0 at its end, and one tagged field instead: tag 5, one byte.
    tagged = encode(plain, version)[:-1] + b"\1\5\1x"

    assert read(plain, version) is not None
    assert read(request_of([]), version) is None
    assert read(request_of([("t", [])]), version) is None
    assert read(request_of([("t", [one]), ("u", [])]), version) is None
    assert read(request_of([("t", [one])], replica_id=1), version) is None
    assert read(request_of([("t", [one, (1, 0, -1), one])]), version) is None
    assert read(request_of([("t", [one]), ("u", [one]), ("t", [(1, 0, -1)])]), version) is None
    assert decode(ListOffsetsRequest, version, tagged) == decode(
        ListOffsetsRequest, version, encode(plain, version)
    )
    assert read_plain_list_offsets(tagged, version) is None


@pytest.mark.parametrize("behind", ["partition", "topic", "request"])
def test_each_count_of_tagged_fields_is_looked_at(behind: str) -> None:
    body = bytearray(encode(request_of([("t", [(0, 0, -1)])]), 9))
    body[{"partition": -3, "topic": -2, "request": -1}[behind]] = 1

    assert read_plain_list_offsets(bytes(body), 9) is None


def test_a_name_that_is_too_long_is_left_to_the_codec() -> None:
    head, tail = encode(request_of([("t", [(0, 0, -1)])]), 9).split(b"\x02t")
    longest, longer = b"n" * MAX_STRING_BYTES, b"n" * (MAX_STRING_BYTES + 1)

    def named(name: bytes) -> bytes:
        return head + uvarint(len(name) + 1) + name + tail

    assert read_plain_list_offsets(named(longest), 9) is not None
    assert read_plain_list_offsets(named(longer), 9) is None


@pytest.mark.parametrize("size", [b"\0", b"\xff" * 6, b"\xff" * 4 + b"\x0f"])
def test_a_size_that_cannot_be_is_left_to_the_codec(size: bytes) -> None:
    body = encode(request_of([("t", [(0, 0, -1)])]), 9).replace(b"\x02t", size + b"t")

    assert read_plain_list_offsets(body, 9) is None


@pytest.mark.parametrize("version", older_versions)
def test_older_versions_are_left_to_the_codec(version: int) -> None:
    assert read(request_of([("t", [(0, 0, -1)])]), version) is None


@given(versions, contents, st.data())
def test_damaged_requests_are_read_as_by_the_codec_or_left_to_it(
    version: int, topics: Topics, data: st.DataObject
) -> None:
    body = bytearray(encode(request_of(topics), version))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    body = body[: data.draw(st.integers(0, len(body)))] + data.draw(st.binary(max_size=3))

    plain = read_plain_list_offsets(bytes(body), version)

    if plain is not None:
        request = decode(ListOffsetsRequest, version, body)
        assert plain.isolation_level == request.isolation_level
        assert plain.asked == [
            (
                ANY if "\N{REPLACEMENT CHARACTER}" in topic.name else topic.name.encode(),
                one.partition_index,
                one.current_leader_epoch,
                one.timestamp,
            )
            for topic in request.topics
            for one in topic.partitions
        ]
