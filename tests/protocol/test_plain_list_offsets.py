"""
ListOffsets of the plain form is read and answered as the general codec does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.codec import decode, encode
from barnabas.protocol.headers import response_header
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from barnabas.protocol.plain_list_offsets import (
    FIRST_FLEXIBLE_VERSION,
    PlainListOffsets,
    TopicOfOffsets,
    WantedOffset,
    plain_list_offsets_answer,
    read_plain_list_offsets,
)

HEAD = b"header"

Asked: TypeAlias = "tuple[int, int, int]"
"""Index, leader epoch, timestamp."""
Found: TypeAlias = "tuple[int, int, list[tuple[bytes, list[Asked]]]]"
"""Replica id, isolation level, and what is asked of each topic."""

int8s = st.integers(-(2**7), 2**7 - 1)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
versions = st.sampled_from(
    [version for version in ListOffsetsRequest.api.versions if version >= FIRST_FLEXIBLE_VERSION]
)
older_versions = range(ListOffsetsRequest.api.versions[0], FIRST_FLEXIBLE_VERSION)
names = st.text(max_size=300)
wanted = st.tuples(int32s, int32s, int64s)
few_or_many = st.lists(wanted, min_size=1, max_size=3) | st.lists(
    wanted, min_size=126, max_size=130
)
contents = st.lists(st.tuples(names, few_or_many), min_size=1, max_size=3)


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


def found_in(request: PlainListOffsets | None) -> Found | None:
    if request is None:
        return None
    topics = [
        (topic.name, [(one.index, one.leader_epoch, one.timestamp) for one in topic.partitions])
        for topic in request.topics
    ]
    return request.replica_id, request.isolation_level, topics


def read(request: ListOffsetsRequest, version: int) -> Found | None:
    frame = memoryview(HEAD + encode(request, version))
    return found_in(read_plain_list_offsets(frame, len(HEAD), version))


@given(versions, contents, int32s, int8s)
def test_a_request_of_the_plain_form_is_read_as_the_codec_reads_it(
    version: int, topics: list[tuple[str, list[Asked]]], replica_id: int, isolation_level: int
) -> None:
    found = read(request_of(topics, replica_id, isolation_level), version)

    assert (
        replica_id,
        isolation_level,
        [(name.encode(), partitions) for name, partitions in topics],
    ) == found


@pytest.mark.parametrize("version", range(FIRST_FLEXIBLE_VERSION, 12))
def test_requests_of_another_form_are_left_to_the_codec(version: int) -> None:
    plain = request_of([("t", [(0, 0, -1)])])
    # Without the count of 0 at its end, and one tagged field instead: tag 5, one byte.
    tagged = encode(plain, version)[:-1] + b"\1\5\1x"

    assert read(plain, version) is not None
    assert read(request_of([]), version) is None
    assert read(request_of([("t", [])]), version) is None
    assert read(request_of([("t", [(0, 0, -1)]), ("u", [])]), version) is None
    assert decode(ListOffsetsRequest, version, tagged) == decode(
        ListOffsetsRequest, version, encode(plain, version)
    )
    assert read_plain_list_offsets(memoryview(tagged), 0, version) is None


@pytest.mark.parametrize("behind", ["partition", "topic", "request"])
def test_each_count_of_tagged_fields_is_looked_at(behind: str) -> None:
    body = bytearray(encode(request_of([("t", [(0, 0, -1)])]), 9))
    body[{"partition": -3, "topic": -2, "request": -1}[behind]] = 1

    assert read_plain_list_offsets(memoryview(body), 0, 9) is None


@pytest.mark.parametrize("size", [b"\xff" * 6, b"\xff" * 4 + b"\x0f"])
def test_a_size_that_cannot_be_is_left_to_the_codec(size: bytes) -> None:
    body = encode(request_of([("t", [(0, 0, -1)])]), 9).replace(b"\x02t", size + b"t")

    assert read_plain_list_offsets(memoryview(body), 0, 9) is None


@pytest.mark.parametrize("version", older_versions)
def test_older_versions_are_left_to_the_codec(version: int) -> None:
    assert read(request_of([("t", [(0, 0, -1)])]), version) is None


@given(versions, contents, st.data())
def test_what_is_read_of_damaged_requests_is_what_the_codec_reads_or_nothing(
    version: int, topics: list[tuple[str, list[Asked]]], data: st.DataObject
) -> None:
    body = bytearray(encode(request_of(topics), version))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    body = body[: data.draw(st.integers(0, len(body)))] + data.draw(st.binary(max_size=3))

    found = found_in(read_plain_list_offsets(memoryview(body), 0, version))

    if found is not None:
        request = decode(ListOffsetsRequest, version, body)
        assert (request.replica_id, request.isolation_level) == found[:2]
        for topic, (name, partitions) in zip(request.topics, found[2], strict=True):
            assert name.decode(errors="replace") == topic.name
            assert partitions == [
                (one.partition_index, one.current_leader_epoch, one.timestamp)
                for one in topic.partitions
            ]


@given(versions, int32s, contents)
def test_an_answer_is_written_as_the_codec_writes_it(
    version: int, correlation_id: int, topics: list[tuple[str, list[Asked]]]
) -> None:
    request = PlainListOffsets(-1, 0)
    responses = []
    for name, partitions in topics:
        topic = TopicOfOffsets(name.encode())
        response = ListOffsetsTopicResponse(name=name, partitions=[])
        for index, epoch, offset in partitions:
            one = WantedOffset(index, -1, -1)
            one.offset, one.epoch = offset, epoch
            topic.partitions.append(one)
            response.partitions.append(
                ListOffsetsPartitionResponse(
                    partition_index=index, error_code=0, offset=offset, leader_epoch=epoch
                )
            )
        request.topics.append(topic)
        responses.append(response)
    encoded = response_header(ListOffsetsRequest.api.key, version, correlation_id) + encode(
        ListOffsetsResponse(topics=responses), version
    )

    frame = plain_list_offsets_answer(correlation_id, request)

    assert len(encoded).to_bytes(4) + encoded == frame
